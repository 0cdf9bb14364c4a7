"""The numbers that a metric returns for one text (shares, averaged F1s), and how they are pooled over a corpus."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["AveragedF1", "Number", "Numbers", "Share"]

NAN = float("nan")


@dataclass(frozen=True)
class Share:
    """A number that is pooled over a corpus: the sum of parts by the sum of wholes, not the mean of ratios."""

    part: float
    whole: float

    def __float__(self) -> float:
        if not self.whole:
            return NAN
        return self.part / self.whole


@dataclass(frozen=True)
class AveragedF1:
    """What one text adds to the F1 of two averages: sums and counts of precisions and of recalls.

    Over a corpus P = Σ precisions / Σ their count, R likewise, and F1 = 2 P R / (P + R), which is not the mean of the
    texts' F1. Where there is nothing to divide by it is 0.
    """

    precision: Share
    recall: Share

    @property
    def sums(self) -> tuple[float, float, float, float]:
        """Sum and count of the precisions, sum and count of the recalls."""
        return self.precision.part, self.precision.whole, self.recall.part, self.recall.whole

    def __float__(self) -> float:
        if not self.precision.whole and not self.recall.whole:
            return NAN
        precision = float(self.precision) if self.precision.whole else 0.0
        recall = float(self.recall) if self.recall.whole else 0.0
        return harmonic_mean_f1(precision, recall)


def harmonic_mean_f1(precision: float, recall: float) -> float:
    """F1 = 2 P R / (P + R); 0 where one of them is 0."""
    if not precision or not recall:
        return 0.0
    return 2 * precision * recall / (precision + recall)


Number = (
    float | Share | AveragedF1 | np.ndarray
)  # an array is a curve, on the same grid for all texts
Numbers = dict[str, Number]  # by the names of the metric's keys
