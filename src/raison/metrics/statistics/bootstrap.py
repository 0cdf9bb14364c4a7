"""Resampling of examples, and the intervals that follow from it: percentile and BCa."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist

import numpy as np

from raison.metrics.statistics.samples import ROUNDING

__all__ = ["CELLS", "bca", "percentile", "resampled_ratios", "resampled_sums"]

CELLS = 1 << 20  # random numbers at a time: bounds memory, stays in the cache
NORMAL = NormalDist()


def draw_resampled_examples(
    n: int,
    resamples: int,
    seed: int,
    *,
    width: int = 1,
) -> Iterator[tuple[slice, np.ndarray]]:
    """Rows of resamples and the examples [rows n] that they draw with replacement; `width` numbers for each example."""
    generator = np.random.default_rng(seed)
    step = max(1, CELLS // (n * width))
    for start in range(0, resamples, step):
        stop = min(start + step, resamples)
        examples = generator.integers(0, n, (stop - start, n))
        yield slice(start, stop), examples


def resampled_ratios(
    part: np.ndarray,
    total: np.ndarray,
    resamples: int,
    seed: int,
) -> np.ndarray:
    """[resamples] Σ part / Σ total in samples of as many examples, drawn with replacement."""
    n = len(part)
    one_total = total[0]
    all_equal = (total == one_total).all()
    ratios = np.empty(resamples)
    for rows, examples in draw_resampled_examples(n, resamples, seed):
        parts = part[examples].sum(1)
        if all_equal:  # as in a mean: the sum is known
            ratios[rows] = parts / (n * one_total)
        else:
            totals = total[examples].sum(1)
            ratios[rows] = parts / totals
    return ratios


def resampled_sums(table: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """[resamples c] the sums of columns [n c] in samples of as many examples, drawn with replacement."""
    n, width = table.shape
    sums = np.empty((resamples, width))
    for rows, examples in draw_resampled_examples(n, resamples, seed, width=width):
        sums[rows] = table[examples].sum(1)
    return sums


def percentile(resampled: np.ndarray, level: float) -> tuple[float, float]:
    """The quantiles (1 ∓ level) / 2 of the resampled estimates."""
    low, high = np.quantile(resampled, interval_tails(level))
    return float(low), float(high)


def interval_tails(level: float) -> tuple[float, float]:
    """The shares below the lower and below the upper bound: (1 ∓ level) / 2."""
    below_low = (1 - level) / 2
    below_high = (1 + level) / 2
    return below_low, below_high


def bca(
    resampled: np.ndarray,
    estimate: float,
    without: np.ndarray,
    level: float,
) -> tuple[float, float]:
    """Bias-corrected and accelerated interval (Efron 1987).

    z₀ = Φ⁻¹(share of resamples below the estimate, ties by half), a = Σ d³ / (6 (Σ d²)^{3/2}) with d = mean(θ₍₎) − θ₍ᵢ₎
    over the estimates without example i; the bounds are the quantiles Φ(z₀ + (z₀ + z) / (1 − a (z₀ + z))) of the
    resampled estimates, z = Φ⁻¹((1 ∓ level) / 2).
    """
    bias = bca_bias_correction(resampled, estimate)
    acceleration = bca_acceleration(without)
    places = []
    for side in interval_tails(level):
        z = bias + NORMAL.inv_cdf(side)
        stretch = 1 - acceleration * z
        place = NORMAL.cdf(bias + z / stretch)
        places.append(place)
    low, high = np.quantile(resampled, places)
    return float(low), float(high)


def bca_bias_correction(resampled: np.ndarray, estimate: float) -> float:
    """z₀: the normal quantile of the share of resamples below the estimate, ties by half."""
    largest = np.abs(resampled).max()
    tolerance = ROUNDING * max(largest, abs(estimate))
    below = (resampled < estimate - tolerance).mean()
    not_above = (resampled <= estimate + tolerance).mean()
    share = float((below + not_above) / 2)

    edge = 0.5 / len(
        resampled
    )  # an estimate outside all resamples has no finite z₀: half a resample beyond them
    share = max(share, edge)
    share = min(share, 1 - edge)
    return NORMAL.inv_cdf(share)


def bca_acceleration(without: np.ndarray) -> float:
    """a: the skewness of the estimates without each example; 0 where they are all equal."""
    distance = without.mean() - without
    squares = (distance**2).sum()
    spread = squares**1.5
    if not spread:
        return 0.0
    cubes = (distance**3).sum()
    return float(cubes / (6 * spread))
