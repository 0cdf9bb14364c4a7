"""Permutation tests of pairs, two-sided: is one method better than another on the same examples?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import ArrayLike

from raison.core.parameters import check_integer
from raison.metrics.numbers import AveragedF1, Share
from raison.metrics.statistics.bootstrap import CELLS
from raison.metrics.statistics.samples import (
    ROUNDING,
    f1_gap_of_sums,
    f1_of_sums,
    paired_differences,
    paired_shares,
    paired_sums,
)

__all__ = [
    "Comparison",
    "averaged_f1_permutation_test",
    "permutation_test",
    "pooled_permutation_test",
]

EXACT = 14  # pairs up to which all 2^n sign changes are tried
RESAMPLES = 10_000


@dataclass(frozen=True)
class Comparison:
    """The difference of two methods on the same examples, and how often chance gives one as large."""

    difference: float  # first − second; NaN without pairs
    p: float  # two-sided; 1 where nothing speaks for a difference, also without pairs
    count: int  # pairs used
    excluded: int  # pairs in which a number is missing
    exact: bool  # all sign changes were tried, not a sample of them


def comparison_without_pairs(excluded: int) -> Comparison:
    """The comparison of nothing, in which nothing speaks for a difference."""
    return Comparison(nan, 1.0, 0, excluded, exact=True)


def permutation_test(
    first: ArrayLike,
    second: ArrayLike,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Whether the mean of paired numbers differs: two-sided sign-flip permutation test (Fisher 1935).

    If the two methods are the same in distribution, each difference could as well have the other sign. p is the share
    of sign changes that give a mean at least as far from 0: of all 2^n where n ≤ 14 (pairs without a difference change
    nothing and are not counted in n), else of random ones, (1 + hits) / (1 + resamples), so never 0.
    """
    differences = paired_differences(first, second)
    count = len(differences)
    excluded = np.size(first) - count

    def only_column(sums: np.ndarray) -> np.ndarray:
        return sums[:, 0]

    scale = float(np.abs(differences).sum())
    p, exact = sign_flip_test(
        differences[:, None],
        only_column,
        scale=scale,
        resamples=resamples,
        seed=seed,
    )
    mean_difference = float(differences.mean()) if count else nan
    return Comparison(mean_difference, p, count, excluded, exact)


def pooled_permutation_test(
    first: Sequence[Share],
    second: Sequence[Share],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Whether two pooled ratios differ: the two methods' counts of an example are swapped at random.

    As `permutation_test`, with the difference of Σ part / Σ whole as the statistic. Pairs in which a whole is 0 are
    left out and counted.
    """
    pairs = paired_shares(first, second)
    if not pairs.count:
        return comparison_without_pairs(pairs.excluded)
    one, other = pairs.first, pairs.second
    parts = one.parts + other.parts
    wholes = one.wholes + other.wholes
    all_parts = float(parts.sum())
    all_wholes = float(wholes.sum())

    def gap_of_ratios(sums: np.ndarray) -> np.ndarray:
        # of ± sums of differences: the one side has half of (all + sum), the other half of (all − sum)
        part_sums, whole_sums = sums.T
        first_ratios = (all_parts + part_sums) / (all_wholes + whole_sums)
        second_ratios = (all_parts - part_sums) / (all_wholes - whole_sums)
        gap: np.ndarray = first_ratios - second_ratios
        return gap

    p, exact = sign_flip_test(
        pairs.differences(),
        gap_of_ratios,
        scale=1.0,
        resamples=resamples,
        seed=seed,
    )
    return Comparison(
        difference=one.ratio() - other.ratio(),
        p=p,
        count=pairs.count,
        excluded=pairs.excluded,
        exact=exact,
    )


def averaged_f1_permutation_test(
    first: Sequence[AveragedF1],
    second: Sequence[AveragedF1],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Whether two F1 of averages differ: the two methods' sums of an example are swapped at random.

    As `permutation_test`, with the difference of the F1 as the statistic.
    """
    table, excluded = paired_sums(first, second)
    if not len(table):
        return comparison_without_pairs(excluded)
    first_sums = table[:, :4]
    second_sums = table[:, 4:]
    both_sums = first_sums + second_sums
    total = both_sums.sum(0)

    def gap_of_f1(sums: np.ndarray) -> np.ndarray:
        # of ± sums of differences: the one side has half of (all + sum), the other half of (all − sum)
        first_f1 = f1_of_sums((total + sums) / 2)
        second_f1 = f1_of_sums((total - sums) / 2)
        gap: np.ndarray = first_f1 - second_f1
        return gap

    differences = first_sums - second_sums
    p, exact = sign_flip_test(
        differences,
        gap_of_f1,
        scale=1.0,
        resamples=resamples,
        seed=seed,
    )
    difference = float(f1_gap_of_sums(table.sum(0)))
    return Comparison(difference, p, len(table), excluded, exact)


# -- sign changes -------------------------------------------------------------------------------------------

Statistic = Callable[[np.ndarray], np.ndarray]  # [k c] sums over pairs -> [k]


def sign_flip_test(
    differences: np.ndarray,
    statistic: Statistic,
    *,
    scale: float,
    resamples: int,
    seed: int,
) -> tuple[float, bool]:
    """p, and whether all sign changes were tried: how often rows [n c] with random signs give a statistic as large.

    The statistic is that of the sums of the rows. `scale`: its size, below which a part of 10⁻¹² is rounding, so that
    equal sums count as equal.
    """
    check_integer("resamples", resamples, 1)
    changing = differences[(differences != 0).any(1)]
    n = len(changing)
    without_flips = changing.sum(0, keepdims=True)
    observed = abs(float(statistic(without_flips)[0]))
    least = observed - ROUNDING * scale

    if n <= EXACT:
        values = statistic(all_signs_of_pairs(n) @ changing)
        as_large = np.abs(values) >= least
        return float(as_large.mean()), True

    hits = 0
    for signs in random_signs_of_pairs(n, resamples, seed):
        values = statistic(signs @ changing)
        as_large = np.abs(values) >= least
        hits += int(as_large.sum())
    return (1 + hits) / (1 + resamples), False


def all_signs_of_pairs(n: int) -> np.ndarray:
    """[2^n n] all rows of 1 and −1."""
    numbers = np.arange(1 << n)
    places = np.arange(n)
    bits = (numbers[:, None] >> places) & 1
    return 1.0 - 2.0 * bits


def random_signs_of_pairs(n: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """`resamples` rows [n] of 1 and −1, a piece at a time."""
    generator = np.random.default_rng(seed)
    step = max(1, CELLS // n)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        count = rows * n
        whole_bytes = (count + 7) // 8
        random_bytes = np.frombuffer(generator.bytes(whole_bytes), np.uint8)
        bits = np.unpackbits(random_bytes, count=count)
        table = bits.reshape(rows, n)
        yield 1.0 - 2.0 * table
