"""The matrix of many rationales of one text: its rows, columns and cells, alarms and facts (P0, Figure 1).

What was predicted stands down, the context across.

Units differ between targets, since each may use only what comes before it; tokens do not. So a column is a token, or
several tokens of one unit that every row treats alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.core.records import Encoding, Explanation, Span, Target
from raison.core.units import visible_space_in_unit_name
from raison.show.explanation_sentences import provenance_phrases
from raison.show.rationale_sentences import certificate_of
from raison.show.text_formats import clean_text
from raison.show.text_pieces import given_tokens, gold_characters

__all__ = [
    "CHOSEN",
    "GIVEN",
    "HIDDEN",
    "INSUFFICIENT",
    "SPARED",
    "MatrixAlarm",
    "MatrixColumn",
    "RationaleMatrix",
    "matrix_facts",
    "matrix_of_rationales",
    "matrix_row_alarms",
]

HIDDEN = 0  # not visible to the target
SPARED = 1  # left out
GIVEN = 2  # kept anyway
CHOSEN = 3  # in the rationale
MEANINGS = {CHOSEN: "in the rationale", GIVEN: "given", SPARED: "not needed"}


@dataclass(frozen=True)
class MatrixAlarm:
    """What is said about a row that is not what one would think."""

    sign: str
    ascii_sign: str
    meaning: str


INSUFFICIENT = MatrixAlarm("!", "!", "not sufficient")
FOREIGN = MatrixAlarm("≠", "~", "not the model's own prediction")
EARLY = MatrixAlarm("…", "?", "the search ended early, a smaller rationale may exist")
ALARMS = (INSUFFICIENT, FOREIGN, EARLY)


@dataclass(frozen=True)
class MatrixColumn:
    """Tokens that stand beside each other and that all rows treat alike."""

    name: str
    segment: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class RationaleMatrix:
    """Rationales of one text, by target and column."""

    rows: tuple[Explanation, ...]
    columns: tuple[MatrixColumn, ...]
    cells: np.ndarray  # [row column] HIDDEN | SPARED | GIVEN | CHOSEN
    # [row column] whether people linked the two; None: nobody was asked
    gold: np.ndarray | None = None

    def begins_segment(self, column: int) -> bool:
        """Whether another text begins at this column."""
        if column == 0:
            return False
        return self.columns[column].segment != self.columns[column - 1].segment

    def meanings(self) -> dict[int, str]:
        """What the states mean that occur."""
        occurring = {}
        for state, meaning in MEANINGS.items():
            if (self.cells == state).any():
                occurring[state] = meaning
        return occurring

    def alarms(self) -> list[MatrixAlarm]:
        """The alarms that occur, each once."""
        occurring: set[MatrixAlarm] = set()
        for row in self.rows:
            occurring.update(matrix_row_alarms(row))
        return [alarm for alarm in ALARMS if alarm in occurring]


# -- the matrix ----------------------------------------------------------------------------------------------------


def matrix_of_rationales(
    explanations: Sequence[Explanation], gold: Sequence[tuple[Span, Span]] | None = None
) -> RationaleMatrix:
    """The matrix of rationales that share their encoding, rows in reading order.

    `gold` are words that people linked: a span of what is read (of the first text, if it names no segment), and one of
    what is written (of the last text).
    """
    rows = tuple(sorted(explanations, key=lambda explanation: explanation.target.positions))
    encoding = rows[0].encoding
    states = np.stack([matrix_token_states(row) for row in rows])  # [row token]
    linked = None
    if gold is not None:
        by_row = [tokens_linked_by_people(row.target, encoding, gold) for row in rows]
        linked = np.stack(by_row)  # [row token]

    runs = matrix_column_runs(rows, states, linked)
    columns = []
    first_tokens = []
    for run in runs:
        columns.append(matrix_column_of(encoding, run))
        first_tokens.append(run[0])
    return RationaleMatrix(
        rows=rows,
        columns=tuple(columns),
        cells=states[:, first_tokens],
        gold=None if linked is None else linked[:, first_tokens],
    )


def matrix_column_runs(
    rows: Sequence[Explanation], states: np.ndarray, linked: np.ndarray | None
) -> list[tuple[int, ...]]:
    """Tokens of the columns: those that some row sees, together where they share a unit and all rows treat them alike.

    `states` and `linked` are [row token].
    """
    encoding = rows[0].encoding
    row_of_most_units = max(rows, key=lambda row: len(row.units))
    unit_of = row_of_most_units.units.of

    def is_like_the_one_before(token: int) -> bool:
        before = token - 1
        if unit_of[token] < 0 or unit_of[token] != unit_of[before]:
            return False
        if (states[:, token] != states[:, before]).any():
            return False
        if linked is None:
            return True
        return bool((linked[:, token] == linked[:, before]).all())

    visible_to_some = (states != HIDDEN).any(0)
    runs: list[tuple[int, ...]] = []
    for token in np.flatnonzero(visible_to_some & ~encoding.fixed).tolist():
        follows_last_run = bool(runs) and runs[-1][-1] == token - 1
        if follows_last_run and is_like_the_one_before(token):
            runs[-1] = (*runs[-1], token)
        else:
            runs.append((token,))
    return runs


def matrix_token_states(explanation: Explanation) -> np.ndarray:
    """[t] what each token is to this target."""
    states = np.where(explanation.scope, SPARED, HIDDEN)
    states[given_tokens(explanation)] = GIVEN
    if explanation.selected is not None:
        # a token of no unit, -1, reads the added one
        selected_units = np.append(explanation.selected, False)
        selected_tokens = selected_units[explanation.units.of]
        states[selected_tokens & explanation.scope] = CHOSEN
    return states


def matrix_column_of(encoding: Encoding, tokens: tuple[int, ...]) -> MatrixColumn:
    """A column of some tokens, named by what the text says there."""
    first, last = tokens[0], tokens[-1]
    segment = int(encoding.segment[first])
    name = encoding.tokens[first]
    start, end = encoding.start[first], encoding.end[last]
    if start >= 0:
        name = encoding.texts[segment][start:end] or name
    return MatrixColumn(name.strip() or visible_space_in_unit_name(name), segment, tokens)


# -- what people linked --------------------------------------------------------------------------------------------


def tokens_linked_by_people(
    target: Target, encoding: Encoding, gold: Sequence[tuple[Span, Span]]
) -> np.ndarray:
    """[t] tokens that people linked to a target that stands in the text; tokens belong to the words that they touch."""
    linked = np.zeros(len(encoding), bool)
    positions = [position for position in target.positions if position < len(encoding)]
    for read, written in gold:
        segment = written.segment or encoding.segments[-1]
        touched = tokens_touched_by_span(encoding, replace(written, segment=segment))
        if touched[positions].any():
            linked |= tokens_touched_by_span(encoding, read)
    return linked


def tokens_touched_by_span(encoding: Encoding, span: Span) -> np.ndarray:
    """[t] tokens that share a character with a span."""
    marked = gold_characters(encoding, [span])
    touched = np.zeros(len(encoding), bool)
    for token in np.flatnonzero(encoding.start >= 0):
        start, end = encoding.start[token], encoding.end[token]
        in_segment = marked[encoding.segment[token]]
        touched[token] = in_segment[start:end].any()
    return touched


# -- what is said about it -----------------------------------------------------------------------------------------


def matrix_row_alarms(explanation: Explanation) -> list[MatrixAlarm]:
    """Which alarms a row needs."""
    certificate = certificate_of(explanation)
    alarms = []
    if not certificate.sufficient:
        alarms.append(INSUFFICIENT)
    if certificate.is_prediction is False:
        alarms.append(FOREIGN)
    if certificate.status in ("budget", "interrupted"):
        alarms.append(EARLY)
    return alarms


def matrix_facts(matrix: RationaleMatrix) -> list[str]:
    """How the rationales came about; their rules may differ, since a target need not be the model's own choice."""
    parts = provenance_phrases(matrix.rows[0])
    rules = list(dict.fromkeys(certificate_of(row).rule for row in matrix.rows))
    if len(rules) < 2:
        return parts
    named = [clean_text(rule) for rule in rules if rule]
    return [*parts[:-1], f"rules: {', '.join(named)}"]
