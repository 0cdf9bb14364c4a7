"""Effect sizes of a difference, whatever its p-value: Cohen's d, Cliff's δ, probability of superiority."""

from __future__ import annotations

from math import inf, nan

import numpy as np
from numpy.typing import ArrayLike

from raison.metrics.statistics.samples import (
    ROUNDING,
    examples_as_floats,
    examples_without_nan,
    paired_differences,
)

__all__ = ["cliffs_delta", "cohens_d", "superiority"]


def cohens_d(first: ArrayLike, second: ArrayLike) -> float:
    """Effect size of pairs: d_z = mean(first − second) / sd(first − second), with n − 1 (Cohen 1988).

    0 where all differences are 0, ±inf where all are equal but not 0. NaN with fewer than two pairs: no spread exists.
    """
    differences = paired_differences(first, second)
    if len(differences) < 2:
        return nan
    if not differences.any():
        return 0.0
    largest = np.abs(differences).max()
    if np.ptp(differences) <= ROUNDING * largest:  # all are equal
        return inf if differences[0] > 0 else -inf
    mean = differences.mean()
    spread = differences.std(ddof=1)
    return float(mean / spread)


def cliffs_delta(first: ArrayLike, second: ArrayLike) -> float:
    """P(x > y) − P(x < y) for x of the first and y of the second sample, which need not be paired (Cliff 1993).

    From −1 to 1; NaN where a sample is empty. NaNs of each sample are left out.
    """
    a = examples_without_nan(examples_as_floats(first))
    b = np.sort(examples_without_nan(examples_as_floats(second)))
    if not len(a) or not len(b):
        return nan

    pairs = len(a) * len(b)
    smaller_y = np.searchsorted(b, a, side="left")  # [n] for each x
    smaller_or_equal_y = np.searchsorted(b, a, side="right")
    pairs_with_smaller_y = smaller_y.sum()
    pairs_with_larger_y = pairs - smaller_or_equal_y.sum()
    return float((pairs_with_smaller_y - pairs_with_larger_y) / pairs)


def superiority(first: ArrayLike, second: ArrayLike) -> float:
    """Paired probability of superiority: share of pairs with first > second, ties counted by half.

    0.5: neither is better. NaN without pairs.
    """
    differences = paired_differences(first, second)
    if not len(differences):
        return nan
    ties = differences == 0
    wins = (differences > 0) + 0.5 * ties
    return float(wins.mean())
