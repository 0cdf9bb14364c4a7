"""What a line of a shard holds: one text explained by one method, or why it could not be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import target_probability
from raison.core.findings import PredictionSummary
from raison.core.records import Example, Explanation
from raison.metrics.numbers import AveragedF1, Number, Numbers, Share
from raison.runs.checked_lines import JsonObject

__all__ = [
    "Failure",
    "ResultRecord",
    "StoredNumber",
    "StoredNumbers",
    "number_of_stored",
    "pack_explanations",
    "prediction_of",
    "probability_of",
    "stored_numbers",
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
    numbers: tuple[StoredNumbers, ...] | None = (
        None  # of each explanation; None: the run measures nothing
    )
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


def prediction_of(explanation: JsonObject) -> PredictionSummary | None:
    """The prediction in the JSON of an explanation."""
    prediction = explanation["prediction"]
    return None if prediction is None else PredictionSummary.from_dict(prediction)


def probability_of(explanation: JsonObject) -> float | None:
    """How likely the model finds the target, in the JSON of an explanation."""
    return target_probability(prediction_of(explanation))


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
