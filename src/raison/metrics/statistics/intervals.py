"""Bootstrap confidence intervals: of means, of pooled ratios, of the F1 of averages, and of differences of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import ArrayLike

from raison.core.errors import InputError
from raison.core.parameters import check_choice, check_integer
from raison.metrics.numbers import AveragedF1, Share
from raison.metrics.statistics.bootstrap import bca, percentile, resampled_ratios, resampled_sums
from raison.metrics.statistics.samples import (
    ROUNDING,
    examples_as_floats,
    examples_without_nan,
    f1_gap_of_sums,
    f1_of_sums,
    paired_shares,
    paired_sums,
    parts_and_wholes,
    sums_of_shares,
)

__all__ = [
    "Interval",
    "averaged_f1_gap_interval",
    "averaged_f1_interval",
    "mean_interval",
    "pooled_gap_interval",
    "pooled_interval",
]

RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """An estimate and the bounds of its confidence interval.

    Without examples all three are NaN; with one, the bounds are: one example says nothing about the spread, and an
    interval of width 0 would claim certainty. Examples that are all equal have the interval [x, x].
    """

    estimate: float
    low: float
    high: float
    count: int  # examples used
    excluded: int = 0  # examples without a number


def interval_without_examples(excluded: int) -> Interval:
    """The interval of nothing."""
    return Interval(nan, nan, nan, 0, excluded)


def interval_of_one(estimate: float, excluded: int) -> Interval:
    """The estimate of a single example, without bounds."""
    return Interval(estimate, nan, nan, 1, excluded)


def interval_without_width(estimate: float, count: int, excluded: int) -> Interval:
    """The interval of an estimate that is the same whatever is drawn."""
    return Interval(estimate, estimate, estimate, count, excluded)


@dataclass(frozen=True)
class Bootstrap:
    """How an interval is made."""

    level: float
    kind: str = "bca"
    resamples: int = RESAMPLES
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("bca", "percentile"))
        check_integer("resamples", self.resamples, 1)
        if not 0 < self.level < 1:
            raise InputError(f"level is a number above 0 and below 1, not {self.level}.")


def mean_interval(
    values: ArrayLike,
    *,
    level: float = 0.95,
    kind: str = "bca",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Bootstrap confidence interval of a mean over examples (Efron & Tibshirani 1993).

    percentile: quantiles of the means of resampled examples. bca: quantiles moved for bias and skewness, more accurate.
    Both are too narrow where examples are few and skewed. Measured coverage of 95 % BCa intervals of the mean of n
    log-normal values (σ = 1): 83 % at n = 10, 87 % at 20, 89 % at 30, 91 % at 50, 92 % at 100, 93 % at 200; of 20
    exponential ones 92 %, of 20 normal ones 93 %.
    """
    numbers = examples_as_floats(values)
    kept = examples_without_nan(numbers)
    count = len(kept)
    excluded = len(numbers) - count
    bootstrap = Bootstrap(level, kind, resamples, seed)
    return ratio_interval(kept, np.ones(count), excluded=excluded, bootstrap=bootstrap)


def pooled_interval(
    shares: Sequence[Share],
    *,
    level: float = 0.95,
    kind: str = "bca",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Bootstrap confidence interval of Σ part / Σ whole, by resampling examples.

    Examples with a whole of 0 add nothing to either sum; they are left out and counted.
    """
    parts, wholes = parts_and_wholes(shares)
    kept = wholes > 0
    excluded = int((~kept).sum())
    bootstrap = Bootstrap(level, kind, resamples, seed)
    return ratio_interval(parts[kept], wholes[kept], excluded=excluded, bootstrap=bootstrap)


def ratio_interval(
    part: np.ndarray,
    total: np.ndarray,
    *,
    excluded: int,
    bootstrap: Bootstrap,
) -> Interval:
    """Interval of Σ part / Σ total over examples; a mean has totals of 1."""
    n = len(part)
    if not n:
        return interval_without_examples(excluded)
    all_parts = part.sum()
    all_totals = total.sum()
    estimate = float(all_parts / all_totals)
    if n == 1:
        return interval_of_one(estimate, excluded)
    ratios = part / total
    largest = np.abs(ratios).max()
    if np.ptp(ratios) <= ROUNDING * largest:  # every resample gives the same, up to rounding
        return interval_without_width(estimate, n, excluded)

    resampled = resampled_ratios(part, total, bootstrap.resamples, bootstrap.seed)
    if bootstrap.kind == "percentile":
        low, high = percentile(resampled, bootstrap.level)
    else:
        without_each = (all_parts - part) / (all_totals - total)
        low, high = bca(resampled, estimate, without_each, bootstrap.level)
    return Interval(estimate, low, high, n, excluded)


def pooled_gap_interval(
    first: Sequence[Share],
    second: Sequence[Share],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """BCa interval of the difference of two pooled ratios on the same examples, which are resampled together.

    Pairs in which a whole is 0 are left out and counted.
    """
    bootstrap = Bootstrap(level, resamples=resamples, seed=seed)
    pairs = paired_shares(first, second)
    if not pairs.count:
        return interval_without_examples(pairs.excluded)
    one, other = pairs.first, pairs.second
    estimate = one.ratio() - other.ratio()
    if pairs.count == 1:
        return interval_of_one(estimate, pairs.excluded)

    without_each = one.ratios_without_each() - other.ratios_without_each()
    if np.ptp(without_each) <= ROUNDING:  # the same whatever is drawn, up to rounding
        return interval_without_width(estimate, pairs.count, pairs.excluded)

    # a seed draws the same examples for both
    ratios = resampled_ratios(one.parts, one.wholes, resamples, seed)
    other_ratios = resampled_ratios(other.parts, other.wholes, resamples, seed)
    gaps = ratios - other_ratios
    low, high = bca(gaps, estimate, without_each, bootstrap.level)
    return Interval(estimate, low, high, pairs.count, pairs.excluded)


def averaged_f1_interval(
    values: Sequence[AveragedF1],
    *,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """BCa interval of the F1 of averaged precision and recall, by resampling examples.

    Examples without a precision and a recall add nothing; they are left out and counted.
    """
    table, excluded = sums_of_shares(values)
    return interval_of_sums(
        table, f1_of_sums, excluded=excluded, bootstrap=Bootstrap(level, seed=seed)
    )


def averaged_f1_gap_interval(
    first: Sequence[AveragedF1],
    second: Sequence[AveragedF1],
    *,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """BCa interval of the difference of two such F1 on the same examples, which are resampled together."""
    table, excluded = paired_sums(first, second)
    return interval_of_sums(
        table, f1_gap_of_sums, excluded=excluded, bootstrap=Bootstrap(level, seed=seed)
    )


Statistic = Callable[[np.ndarray], np.ndarray]  # [.. c] sums over examples -> [..]


def interval_of_sums(
    table: np.ndarray,
    statistic: Statistic,
    *,
    excluded: int,
    bootstrap: Bootstrap,
) -> Interval:
    """BCa interval of a statistic of sums over examples, table [n c]."""
    n = len(table)
    if not n:
        return interval_without_examples(excluded)
    total = table.sum(0)
    estimate = float(statistic(total))
    if n == 1:
        return interval_of_one(estimate, excluded)

    sums = resampled_sums(table, bootstrap.resamples, bootstrap.seed)
    resampled = statistic(sums)
    if np.ptp(resampled) <= ROUNDING:  # the same whatever is drawn, up to rounding
        return interval_without_width(estimate, n, excluded)
    without_each = statistic(total - table)
    low, high = bca(resampled, estimate, without_each, bootstrap.level)
    return Interval(estimate, low, high, n, excluded)
