"""What a metric declares about each of its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

__all__ = [
    "ANY_NUMBER",
    "FROM_0_TO_1",
    "FROM_MINUS_1_TO_1",
    "NOT_NEGATIVE",
    "Direction",
    "MetricKey",
    "ValueRange",
]

Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class ValueRange:
    """The smallest and the largest value of a number."""

    low: float = -inf
    high: float = inf


ANY_NUMBER = ValueRange()
NOT_NEGATIVE = ValueRange(low=0.0)
FROM_0_TO_1 = ValueRange(0.0, 1.0)
FROM_MINUS_1_TO_1 = ValueRange(-1.0, 1.0)


@dataclass(frozen=True)
class MetricKey:
    """One number of a metric: its name, and how to read it."""

    name: str  # by which `Metric.ask` returns it
    direction: Direction | None = None  # which values are better; None: neither
    curve: bool = False  # an array of values instead of one
    pooled: bool = False  # a `Share` or an `AveragedF1`, which are summed over the corpus
    range: ValueRange = ANY_NUMBER
    range_of_probabilities: ValueRange | None = (
        None  # the same, where the model gives probabilities
    )

    @property
    def higher_is_better(self) -> bool | None:
        """True or False for a number with a direction, None for one without."""
        if self.direction is None:
            return None
        return self.direction == "higher"

    def range_for(self, *, probabilities: bool) -> ValueRange:
        """The range of this number for a model that gives probabilities, or for one that does not."""
        if probabilities and self.range_of_probabilities is not None:
            return self.range_of_probabilities
        return self.range
