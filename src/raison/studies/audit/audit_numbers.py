"""The numbers of an audit: records with null for what is not defined, and the spread of a number over texts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from raison.core.json_record import JsonObject, Record
from raison.metrics.statistics import mean_interval

__all__ = ["AuditRecord", "Spread", "measured_audit_numbers"]

NAN = float("nan")
Value = TypeVar("Value")


class AuditRecord(Record):
    """A record whose numbers may be undefined."""

    def validate(self) -> None:
        """Read the null of a number that is never missing as NaN."""
        for item in fields(self):
            is_missing = item.name in vars(self) and vars(self)[item.name] is None
            if item.type == "float" and is_missing:
                object.__setattr__(self, item.name, math.nan)

    def to_dict(self) -> JsonObject:
        """The fields in plain types."""
        plain_fields: JsonObject = audit_value_without_nan(super().to_dict())
        return plain_fields


def audit_value_without_nan(value: Any) -> Any:
    """The same with None for what is not finite."""
    if isinstance(value, dict):
        return {key: audit_value_without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [audit_value_without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def measured_audit_numbers(by_title: Mapping[str, Value | None]) -> dict[str, Value]:
    """What was measured, without the titles of what was not."""
    measured = {}
    for title, value in by_title.items():
        if value is not None:
            measured[title] = value
    return measured


@dataclass(frozen=True, eq=False)
class Spread(AuditRecord):
    """A number of every text: mean with its interval, deviation, and how many texts it is not defined for."""

    mean: float
    low: float
    high: float
    deviation: float
    count: int
    left_out: int
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Sequence[float], seed: int) -> Spread:
        """The spread of the numbers that are finite; the others are counted as left out."""
        numbers = np.asarray(values, np.float64)
        defined = numbers[np.isfinite(numbers)]
        left_out = len(numbers) - len(defined)
        if not len(defined):
            return cls(mean=NAN, low=NAN, high=NAN, deviation=NAN, count=0, left_out=left_out)

        interval = mean_interval(defined, seed=seed)
        deviation = NAN
        if len(defined) > 1:
            deviation = float(defined.std(ddof=1))
        values_of_texts = [round(float(value), 6) for value in defined]
        return cls(
            mean=float(interval.estimate),
            low=float(interval.low),
            high=float(interval.high),
            deviation=deviation,
            count=len(defined),
            left_out=left_out,
            values=tuple(values_of_texts),
        )
