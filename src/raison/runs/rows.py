"""The explanations of a run as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import TypeAlias

from raison.runs.result_records import ResultRecord, StoredNumbers, prediction_of, probability_of

__all__ = ["COLUMNS", "ExplanationRow", "columns_of_numbers", "explanation_rows"]

Column: TypeAlias = "float | list[float] | None"


@dataclass(frozen=True)
class ExplanationRow:
    """One explanation of a text, or the failure of a method; the fields are columns in this order."""

    key: str
    index: int  # of the text in the corpus
    place: int | None  # among the explanations of the text, which may have several targets
    id: str
    text: str
    pair: str | None
    label: str | None
    method: str
    target: str | None = None
    predicted: str | None = None
    probability: float | None = None  # of the target
    removal: str | None = None
    units: str | None = None  # their level
    names: list[str] | None = None  # of the units
    scores: list[float] | None = None
    selected: list[bool] | None = None
    order: list[int] | None = None
    failed: str | None = None  # why
    numbers: StoredNumbers = field(default_factory=dict)

    def columns(self) -> dict[str, object]:
        """All columns by name, with those of the metrics behind the others."""
        plain: dict[str, object] = {name: getattr(self, name) for name in COLUMNS}
        return {**plain, **columns_of_numbers(self.numbers)}


COLUMNS = tuple(item.name for item in fields(ExplanationRow) if item.name != "numbers")


def explanation_rows(record: ResultRecord) -> Iterator[ExplanationRow]:
    """One row for each explanation of a record, or for its failure."""
    example = record.example
    label = None if example.label is None else str(example.label)
    if record.failure is not None:
        yield ExplanationRow(
            key=record.key,
            index=record.index,
            place=None,
            id=example.id,
            text=example.text,
            pair=example.pair,
            label=label,
            method=record.method,
            failed=record.failure.reason,
        )
        return
    for place, (explanation, numbers) in enumerate(
        zip(record.explanations, record.numbers_of_each, strict=True)
    ):
        prediction = prediction_of(explanation)
        yield ExplanationRow(
            key=record.key,
            index=record.index,
            place=place,
            id=example.id,
            text=example.text,
            pair=example.pair,
            label=label,
            method=record.method,
            target=explanation["target"]["text"],
            predicted=None if prediction is None else prediction.text,
            probability=probability_of(explanation),
            removal=explanation["removal"],
            units=explanation["units"]["level"],
            names=explanation["units"]["names"],
            scores=explanation["scores"],
            selected=explanation["selected"],
            order=explanation["order"],
            numbers=numbers,
        )


def columns_of_numbers(numbers: StoredNumbers) -> dict[str, Column]:
    """Numbers of metrics as columns; a share has two, the F1 of averages four, a curve is a list."""
    columns: dict[str, Column] = {}
    for key, value in numbers.items():
        if isinstance(value, dict):
            columns[key] = value["curve"]
        elif isinstance(value, list):
            columns[f"{key}_part"], columns[f"{key}_whole"] = value[:2]
            if len(value) == 4:  # the F1 of averages: first the precision, then the recall
                columns[f"{key}_recall_part"], columns[f"{key}_recall_whole"] = value[2:]
        else:
            columns[key] = value
    return columns
