"""A number of every text, summed up: mean, interval, deviation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.metrics.statistics import mean_interval
from raison.studies.audit.json_numbers import AuditRecord

__all__ = ["Spread"]

NAN = float("nan")


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
        return cls(
            mean=float(interval.estimate),
            low=float(interval.low),
            high=float(interval.high),
            deviation=float(defined.std(ddof=1)) if len(defined) > 1 else NAN,
            count=len(defined),
            left_out=left_out,
            values=tuple(round(float(value), 6) for value in defined),
        )
