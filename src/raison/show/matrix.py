"""Many rationales of one text as a matrix: what was predicted down, the context across (P0, Figure 1).

Units differ between targets, since each may use only what comes before it; tokens do not. So a column is a token, or
several tokens of one unit that every row treats alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.core.records import Encoding, Explanation, Span, Target
from raison.core.units import visible_space
from raison.show.certificate import certificate_of, is_rationale
from raison.show.spans import given, golden
from raison.show.wording import clean, provenance

__all__ = [
    "CHOSEN",
    "GIVEN",
    "HIDDEN",
    "INSUFFICIENT",
    "SPARED",
    "Alarm",
    "Column",
    "Matrix",
    "alarms_of",
    "facts",
    "matrix",
    "sheets",
]

HIDDEN, SPARED, GIVEN, CHOSEN = range(
    4
)  # not visible to the target, left out, kept anyway, in the rationale
MEANINGS = {CHOSEN: "in the rationale", GIVEN: "given", SPARED: "not needed"}
LEAST = 3  # rationales that make a matrix


@dataclass(frozen=True)
class Alarm:
    """What is said about a row that is not what one would think."""

    sign: str
    ascii_sign: str
    meaning: str


INSUFFICIENT = Alarm("!", "!", "not sufficient")
FOREIGN = Alarm("≠", "~", "not the model's own prediction")
EARLY = Alarm("…", "?", "the search ended early, a smaller rationale may exist")
ALARMS = (INSUFFICIENT, FOREIGN, EARLY)


@dataclass(frozen=True)
class Column:
    """Tokens that stand beside each other and that all rows treat alike."""

    name: str
    segment: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Matrix:
    """Rationales of one text, by target and column."""

    rows: tuple[Explanation, ...]
    columns: tuple[Column, ...]
    cells: np.ndarray  # [row column] HIDDEN | SPARED | GIVEN | CHOSEN
    gold: np.ndarray | None = (
        None  # [row column] whether people linked the two; None: nobody was asked
    )

    def begins_segment(self, column: int) -> bool:
        """Whether another text begins at this column."""
        return column > 0 and self.columns[column].segment != self.columns[column - 1].segment

    def meanings(self) -> dict[int, str]:
        """What the states mean that occur."""
        return {
            state: meaning for state, meaning in MEANINGS.items() if (self.cells == state).any()
        }

    def alarms(self) -> list[Alarm]:
        """The alarms that occur, each once."""
        occurring = {alarm for row in self.rows for alarm in alarms_of(row)}
        return [alarm for alarm in ALARMS if alarm in occurring]


# -- which rationales make a matrix --------------------------------------------------------------------------------


def sheets(explanations: Sequence[Explanation], least: int = LEAST) -> list[list[Explanation]]:
    """The same explanations in the same order, in lists: those that make a matrix in one, any other alone."""
    keys = subjects_of_rationales(explanations)
    groups: dict[tuple[object, ...], list[Explanation]] = {}
    for key, explanation in zip(keys, explanations, strict=True):
        groups.setdefault(key, []).append(explanation)

    found = []
    for key, explanation in zip(keys, explanations, strict=True):
        group = groups[key]
        if not makes_matrix(group, least):
            found.append([explanation])  # single ones keep their place
        elif explanation is group[0]:
            found.append(group)  # a matrix takes the place of its first row
    return found


def subjects_of_rationales(explanations: Sequence[Explanation]) -> list[tuple[object, ...]]:
    """For each explanation what rationales of one matrix share; for any other its place in the list."""
    contents: dict[int, str] = {}  # many rows hold one and the same encoding: hash it once
    keys: list[tuple[object, ...]] = []
    for place, explanation in enumerate(explanations):
        if not is_rationale(explanation) or not explanation.target.positions:
            keys.append((place,))
            continue
        encoding = explanation.encoding
        if id(encoding) not in contents:
            contents[id(encoding)] = encoding.content()
        keys.append(
            (explanation.model, explanation.method, explanation.removal, contents[id(encoding)])
        )
    return keys


def makes_matrix(group: Sequence[Explanation], least: int) -> bool:
    """Whether these are enough rationales, each of a target of its own."""
    targets = {explanation.target.positions for explanation in group}
    return len(group) >= least and len(targets) == len(group)


# -- the matrix ----------------------------------------------------------------------------------------------------


def matrix(
    explanations: Sequence[Explanation], gold: Sequence[tuple[Span, Span]] | None = None
) -> Matrix:
    """The matrix of rationales that share their encoding, rows in reading order.

    `gold` are words that people linked: a span of what is read (of the first text, if it names no segment), and one of
    what is written (of the last text).
    """
    rows = tuple(sorted(explanations, key=lambda explanation: explanation.target.positions))
    encoding = rows[0].encoding
    states = np.stack([states_of(row) for row in rows])  # [row token]
    linked = None
    if gold is not None:
        linked = np.stack(
            [linked_tokens(row.target, encoding, gold) for row in rows]
        )  # [row token]

    runs = runs_of_like_tokens(rows, states, linked)
    first = [run[0] for run in runs]
    return Matrix(
        rows=rows,
        columns=tuple(column_of(encoding, run) for run in runs),
        cells=states[:, first],
        gold=None if linked is None else linked[:, first],
    )


def runs_of_like_tokens(
    rows: Sequence[Explanation], states: np.ndarray, linked: np.ndarray | None
) -> list[tuple[int, ...]]:
    """Tokens of the columns: those that some row sees, together where they share a unit and all rows treat them alike.

    `states` and `linked` are [row token].
    """
    encoding = rows[0].encoding
    unit_of = max(rows, key=lambda row: len(row.units)).units.of
    visible_to_some = (states != HIDDEN).any(0)
    runs: list[tuple[int, ...]] = []
    for token in np.flatnonzero(visible_to_some & ~encoding.fixed).tolist():
        before = token - 1
        joins = (
            bool(runs)
            and runs[-1][-1] == before
            and -1 < unit_of[token] == unit_of[before]
            and (states[:, token] == states[:, before]).all()
            and (linked is None or (linked[:, token] == linked[:, before]).all())
        )
        if joins:
            runs[-1] = (*runs[-1], token)
        else:
            runs.append((token,))
    return runs


def states_of(explanation: Explanation) -> np.ndarray:
    """[t] what each token is to this target."""
    states = np.where(explanation.scope, SPARED, HIDDEN)
    states[given(explanation)] = GIVEN
    if explanation.selected is not None:
        of_units = np.append(
            explanation.selected, False
        )  # a token of no unit, -1, reads the added one
        states[of_units[explanation.units.of] & explanation.scope] = CHOSEN
    return states


def column_of(encoding: Encoding, tokens: tuple[int, ...]) -> Column:
    """A column of some tokens, named by what the text says there."""
    first, last = tokens[0], tokens[-1]
    segment = int(encoding.segment[first])
    name = encoding.tokens[first]
    if encoding.start[first] >= 0:
        name = encoding.texts[segment][encoding.start[first] : encoding.end[last]] or name
    return Column(name.strip() or visible_space(name), segment, tokens)


# -- what people linked --------------------------------------------------------------------------------------------


def linked_tokens(
    target: Target, encoding: Encoding, gold: Sequence[tuple[Span, Span]]
) -> np.ndarray:
    """[t] tokens that people linked to a target that stands in the text; tokens belong to the words that they touch."""
    found = np.zeros(len(encoding), bool)
    positions = [position for position in target.positions if position < len(encoding)]
    for read, written in gold:
        behind = replace(written, segment=written.segment or encoding.segments[-1])
        if touched_tokens(encoding, behind)[positions].any():
            found |= touched_tokens(encoding, read)
    return found


def touched_tokens(encoding: Encoding, span: Span) -> np.ndarray:
    """[t] tokens that share a character with a span."""
    marked = golden(encoding, [span])
    touched = np.zeros(len(encoding), bool)
    for token in np.flatnonzero(encoding.start >= 0):
        start, end = encoding.start[token], encoding.end[token]
        touched[token] = marked[encoding.segment[token]][start:end].any()
    return touched


# -- what is said about it -----------------------------------------------------------------------------------------


def alarms_of(explanation: Explanation) -> list[Alarm]:
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


def facts(matrix: Matrix) -> list[str]:
    """How the rationales came about; their rules may differ, since a target need not be the model's own choice."""
    parts = provenance(matrix.rows[0])
    rules = list(dict.fromkeys(certificate_of(row).rule for row in matrix.rows))
    if len(rules) < 2:
        return parts
    named = [clean(rule) for rule in rules if rule]
    return [*parts[:-1], f"rules: {', '.join(named)}"]
