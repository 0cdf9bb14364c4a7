"""The record that a line of a shard stores: a text explained by a method with its numbers, or why not; also as rows
of a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TypeAlias

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import target_probability
from raison.core.findings import PredictionSummary
from raison.core.json_record import JsonObject
from raison.core.records import Example, Explanation
from raison.metrics.numbers import AveragedF1, Number, Numbers, Share

__all__ = [
    "COLUMNS",
    "ExplanationRow",
    "Failure",
    "ResultRecord",
    "StoredNumber",
    "StoredNumbers",
    "columns_of_numbers",
    "explanation_rows",
    "number_of_stored",
    "pack_explanations",
    "stored_numbers",
    "stored_prediction",
    "stored_probability",
]

# A share is stored as its two parts, the F1 of averages as four, a curve as {"curve": [...]}, nothing as null.
StoredNumber: TypeAlias = "float | list[float] | dict[str, list[float]] | None"
StoredNumbers: TypeAlias = dict[str, StoredNumber]


@dataclass(frozen=True)
class Failure:
    """Why a text could not be explained, and how often it was tried."""

    reason: str
    tries: int


@dataclass(frozen=True)
class ResultRecord:
    """One text by one method. The explanations stay as JSON, since most readers want a few of their fields."""

    key: str  # of this piece of work, see `identity`
    index: int  # of the text in the corpus
    example: Example
    method: str
    encodings: tuple[JsonObject, ...] = ()  # each once; an explanation names its own by its number
    explanations: tuple[JsonObject, ...] = ()  # one for each target
    # of each explanation; None: the run measures nothing
    numbers: tuple[StoredNumbers, ...] | None = None
    failure: Failure | None = None

    def to_json(self) -> JsonObject:
        head = {
            "key": self.key,
            "index": self.index,
            "example": self.example.to_dict(),
            "method": self.method,
        }
        if self.failure is not None:
            return {**head, "failed": asdict(self.failure)}
        result = {
            **head,
            "encodings": list(self.encodings),
            "explanations": list(self.explanations),
        }
        if self.numbers is not None:
            result["numbers"] = list(self.numbers)
        return result

    @classmethod
    def from_json(cls, data: JsonObject) -> ResultRecord:
        """The record of a line; `InputError` where the line holds something else."""
        try:
            failed = data.get("failed")
            numbers = data.get("numbers")
            return cls(
                key=data["key"],
                index=data["index"],
                example=Example.from_dict(data["example"]),
                method=data["method"],
                encodings=tuple(data.get("encodings", ())),
                explanations=tuple(data.get("explanations", ())),
                numbers=None if numbers is None else tuple(numbers),
                failure=None if failed is None else Failure(**failed),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"This is no record of a result ({error!r}).") from None

    @property
    def numbers_of_each(self) -> Sequence[StoredNumbers]:
        """The numbers of each explanation; empty ones where nothing is measured."""
        return self.numbers or [{} for _ in self.explanations]


@dataclass(frozen=True)
class PackedExplanations:
    """The JSON of a text's explanations by one method."""

    encodings: list[JsonObject]  # each once
    explanations: list[JsonObject]  # they name their encodings by number
    costs: list[JsonObject]  # of each explanation


def pack_explanations(explanations: Sequence[Explanation]) -> PackedExplanations:
    """The JSON of a text's explanations, without what is the same for the whole run."""
    encodings: list[JsonObject] = []
    packed: list[JsonObject] = []
    costs: list[JsonObject] = []
    for explanation in explanations:
        data = explanation.to_dict()
        costs.append(data.pop("cost"))
        data.pop("model")  # of the whole run
        encoding = {**data.pop("encoding"), "id": ""}
        if encoding not in encodings:
            encodings.append(encoding)
        packed.append({**data, "encoding": encodings.index(encoding)})
    return PackedExplanations(encodings, packed, costs)


def stored_prediction(explanation: JsonObject) -> PredictionSummary | None:
    """The prediction in the JSON of an explanation."""
    prediction = explanation["prediction"]
    return None if prediction is None else PredictionSummary.from_dict(prediction)


def stored_probability(explanation: JsonObject) -> float | None:
    """How likely the model finds the target, in the JSON of an explanation."""
    return target_probability(stored_prediction(explanation))


def stored_numbers(of_metrics: Iterable[Numbers]) -> StoredNumbers:
    """The numbers of all metrics as JSON holds them."""
    stored: StoredNumbers = {}
    for numbers in of_metrics:
        for key, value in numbers.items():
            stored[key] = stored_number(value)
    return stored


def stored_number(value: Number) -> StoredNumber:
    if isinstance(value, Share):
        return [float(value.part), float(value.whole)]
    if isinstance(value, AveragedF1):
        return [float(number) for number in value.sums]
    if isinstance(value, np.ndarray):
        return {"curve": value.tolist()}
    return float(value) if np.isfinite(value) else None


def number_of_stored(stored: StoredNumber) -> float | Share | AveragedF1:
    """The number that was stored; NaN for nothing. Curves are read where they are drawn."""
    if isinstance(stored, list):
        share = Share(*stored[:2])
        return share if len(stored) == 2 else AveragedF1(share, Share(*stored[2:]))
    if isinstance(stored, dict):
        raise TypeError("a curve is no single number")
    return float("nan") if stored is None else stored


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
        prediction = stored_prediction(explanation)
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
            probability=stored_probability(explanation),
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
