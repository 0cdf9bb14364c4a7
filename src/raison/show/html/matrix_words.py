"""What the page says about a matrix of rationales: its facts, rows and columns, legend and alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.records import Explanation
from raison.show.html.explanation_words import facts_of_explanation
from raison.show.rationale_matrix import (
    CHOSEN,
    GIVEN,
    SPARED,
    RationaleMatrix,
    matrix_of_rationales,
    matrix_row_alarms,
)
from raison.show.rationale_sentences import certificate_of, rationale_in_words
from raison.show.text_formats import (
    clean_text,
    probability_in_percent,
    short_name,
)

__all__ = ["MatrixWords", "words_of_matrix"]

# characters of names in a matrix, and in what is said of a cell
LONGEST_COLUMN = 24
LONGEST_ROW = 28
LONGEST_NAME = 48
STATES = {CHOSEN: "in the rationale", GIVEN: "given: read anyway", SPARED: "not needed"}


@dataclass(frozen=True)
class MatrixWords:
    """Rationales of one text: what was predicted down, the context across."""

    title: str
    facts: dict[str, str]
    rows: list[MatrixRowWords]
    columns: list[MatrixColumnWords]
    legend: list[tuple[int, str]]  # states that occur, with their meaning
    alarms: list[tuple[str, str]]  # signs that occur, with their meaning
    states: list[str]  # the meaning of each state


@dataclass(frozen=True)
class MatrixRowWords:
    """One rationale; `place` is that of its record in the group."""

    place: int
    name: str
    outcome: str  # in quotes
    signs: str  # of its alarms
    summary: str
    label: str  # all of it, for who can't see the row
    cells: str  # the state of each column as a digit


@dataclass(frozen=True)
class MatrixColumnWords:
    name: str
    quoted: str
    token: int  # the first
    edge: bool  # another segment begins


def words_of_matrix(explanations: Sequence[Explanation]) -> MatrixWords:
    """All that the page draws of a matrix besides the details of its rows."""
    matrix = matrix_of_rationales(explanations)
    places = {id(explanation): place for place, explanation in enumerate(explanations)}
    rows = []
    for row, states in zip(matrix.rows, matrix.cells.tolist(), strict=True):
        cells = "".join(map(str, states))
        rows.append(words_of_matrix_row(row, places[id(row)], cells))

    return MatrixWords(
        title=f"{len(explanations)} rationales of one text",
        facts=words_of_matrix_facts(matrix),
        rows=rows,
        columns=words_of_matrix_columns(matrix),
        legend=[(state, STATES[state]) for state in matrix.meanings()],
        alarms=[(alarm.sign, alarm.meaning) for alarm in matrix.alarms()],
        states=["", STATES[SPARED], STATES[GIVEN], STATES[CHOSEN]],
    )


def words_of_matrix_facts(matrix: RationaleMatrix) -> dict[str, str]:
    """How the rationales came about; their rules may differ."""
    facts = facts_of_explanation(matrix.rows[0])
    shared: dict[str, str] = {}
    for name in ("model", "method", "units", "removal"):
        if name in facts:
            shared[name] = facts[name]
    rules = list(dict.fromkeys(certificate_of(row).rule for row in matrix.rows))
    name = "rule" if len(rules) == 1 else "rules"
    shared[name] = clean_text(", ".join(rules))
    return shared


def words_of_matrix_row(explanation: Explanation, place: int, cells: str) -> MatrixRowWords:
    """What the page says about one rationale."""
    alarms = matrix_row_alarms(explanation)
    target = explanation.target.text
    name = short_name(target, LONGEST_ROW)
    summary = summary_of_matrix_row(explanation)
    meanings = [alarm.meaning for alarm in alarms]
    return MatrixRowWords(
        place=place,
        name=name,
        outcome=f"“{short_name(target, LONGEST_NAME)}”",
        signs="".join(alarm.sign for alarm in alarms),
        summary=summary,
        label="; ".join([f"“{name}”", summary, *meanings]),
        cells=cells,
    )


def summary_of_matrix_row(explanation: Explanation) -> str:
    """`row: 2 of 3 tokens, probability 50.0 % (80.0 % from all)`."""
    certificate = certificate_of(explanation)
    summary = f"row: {rationale_in_words(explanation).size}"
    if certificate.probability is not None:
        summary += f", probability {probability_in_percent(certificate.probability)}"
        if certificate.full_probability is not None:
            summary += f" ({probability_in_percent(certificate.full_probability)} from all)"
    return summary


def words_of_matrix_columns(matrix: RationaleMatrix) -> list[MatrixColumnWords]:
    """What the page says about the columns."""
    columns = []
    for place, column in enumerate(matrix.columns):
        words = MatrixColumnWords(
            name=short_name(column.name, LONGEST_COLUMN),
            quoted=f"“{short_name(column.name, LONGEST_NAME)}”",
            token=column.tokens[0],
            edge=matrix.begins_segment(place),
        )
        columns.append(words)
    return columns
