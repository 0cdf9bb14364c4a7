"""Confidence intervals against SciPy, literal code and their promised coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.metrics.base import Share
from raison.metrics.statistics import (
    bca,
    holm,
    mean_interval,
    percentile,
    permutation_test,
    pooled_gap_interval,
    pooled_interval,
    pooled_permutation_test,
)
from raison.show.evaluation_tables import TOO_NARROW
from tests.helpers.statistics import NAN, shares

# -- intervals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_are_scipys(generator, level):
    """From scipy's own resamples: the same bounds, to rounding."""
    stats = pytest.importorskip("scipy.stats")
    values = generator.exponential(size=30)  # skewed, so that bias and acceleration matter
    without = np.array([np.delete(values, i).mean() for i in range(30)])
    for name in ("percentile", "BCa"):
        theirs = stats.bootstrap(
            (values,),
            np.mean,
            n_resamples=2000,
            confidence_level=level,
            method=name,
            rng=np.random.default_rng(1),
        )
        found = theirs.bootstrap_distribution
        ours = (
            percentile(found, level)
            if name == "percentile"
            else bca(found, values.mean(), without, level)
        )
        np.testing.assert_allclose(ours, theirs.confidence_interval, rtol=1e-9)


def test_intervals_of_few_skewed_values_cover_what_the_docs_say(generator):
    """Of the mean of 20 log-normal values 95 % intervals cover 87 %: so says the note below tables of few texts."""
    covered = []
    for seed in range(800):
        found = mean_interval(generator.lognormal(0, 1, 20), resamples=800, seed=seed)
        covered.append(found.low <= math.exp(0.5) <= found.high)
    assert abs(np.mean(covered) - 0.87) < 0.03 and "is 87 %" in TOO_NARROW


def test_pooled_interval_is_scipys(generator):
    stats = pytest.importorskip("scipy.stats")
    whole = generator.integers(1, 30, 40).astype(float)
    part = generator.binomial(whole.astype(int), 0.3).astype(float)

    def ratio(p, w, axis=-1):
        return p.sum(axis) / w.sum(axis)

    theirs = stats.bootstrap(
        (part, whole),
        ratio,
        paired=True,
        n_resamples=20_000,
        vectorized=True,
        rng=np.random.default_rng(1),
    )
    ours = pooled_interval(shares(part, whole), resamples=20_000)
    assert ours.estimate == pytest.approx(part.sum() / whole.sum())
    # other resamples: the bounds differ by chance alone
    np.testing.assert_allclose(
        (ours.low, ours.high), theirs.confidence_interval, atol=0.05 * (ours.high - ours.low)
    )


def test_pooled_gap_interval_is_scipys(generator):
    stats = pytest.importorskip("scipy.stats")
    whole, other = (generator.integers(1, 30, 40).astype(float) for _ in range(2))
    part = generator.binomial(whole.astype(int), 0.5).astype(float)
    less = generator.binomial(other.astype(int), 0.3).astype(float)

    def gap(p, w, q, v, axis=-1):
        return p.sum(axis) / w.sum(axis) - q.sum(axis) / v.sum(axis)

    theirs = stats.bootstrap(
        (part, whole, less, other),
        gap,
        paired=True,
        n_resamples=20_000,
        vectorized=True,
        rng=np.random.default_rng(1),
    )
    ours = pooled_gap_interval(shares(part, whole), shares(less, other), resamples=20_000)
    test = pooled_permutation_test(shares(part, whole), shares(less, other))
    assert (
        ours.estimate
        == pytest.approx(gap(part, whole, less, other))
        == pytest.approx(test.difference)
    )
    np.testing.assert_allclose(
        (ours.low, ours.high), theirs.confidence_interval, atol=0.05 * (ours.high - ours.low)
    )


def efron(found, estimate, without, level):
    """BCa as Efron & Tibshirani 1993 write it (14.9 to 14.15), sample by sample."""
    from statistics import NormalDist

    normal = NormalDist()
    below = sum(1.0 if f < estimate else 0.5 if f == estimate else 0.0 for f in found) / len(found)
    z0, mean = normal.inv_cdf(below), sum(without) / len(without)
    a = sum((mean - w) ** 3 for w in without) / (6 * sum((mean - w) ** 2 for w in without) ** 1.5)
    ends = []
    for alpha in ((1 - level) / 2, (1 + level) / 2):
        z = normal.inv_cdf(alpha)
        ends.append(np.quantile(found, normal.cdf(z0 + (z0 + z) / (1 - a * (z0 + z)))))
    return ends


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_literally(generator, level):
    """Means, pooled ratios and their gaps, drawn and computed example by example; skewed, so that signs matter."""
    n, seed, count = 12, 7, 400
    part, whole, less, other = generator.exponential(size=(4, n)) ** 2 + 0.1
    drawn = np.random.default_rng(seed).integers(0, n, (count, n))
    rest = [[k for k in range(n) if k != left] for left in range(n)]

    def mean(rows):
        return sum(part[k] for k in rows) / len(rows)

    def ratio(rows):
        return sum(part[k] for k in rows) / sum(whole[k] for k in rows)

    def gap(rows):
        return ratio(rows) - sum(less[k] for k in rows) / sum(other[k] for k in rows)

    how = {"level": level, "resamples": count, "seed": seed}
    ours = (
        mean_interval(part, **how),
        pooled_interval(shares(part, whole), **how),
        pooled_gap_interval(shares(part, whole), shares(less, other), **how),
    )
    for found, statistic in zip(ours, (mean, ratio, gap), strict=True):
        estimate = statistic(range(n))
        expected = efron(
            [statistic(row) for row in drawn], estimate, [statistic(rows) for rows in rest], level
        )
        assert found.estimate == pytest.approx(estimate, rel=1e-12)
        np.testing.assert_allclose((found.low, found.high), expected, rtol=1e-9)


def test_a_gap_of_pooled_ratios_without_enough_examples():
    one = pooled_gap_interval([Share(1, 2), Share(0, 0)], [Share(1, 4), Share(1, 1)])
    assert one.estimate == 0.25 and np.isnan(one.low) and (one.count, one.excluded) == (1, 1)
    assert pooled_gap_interval([Share(0, 0)], [Share(1, 1)]).count == 0
    same = pooled_gap_interval(shares([1, 2, 4], [2, 4, 8]), shares([1, 2, 4], [4, 8, 16]))
    assert (same.low, same.high) == (0.25, 0.25)


@pytest.mark.parametrize("kind", ["bca", "percentile"])
def test_intervals_hold_what_they_promise(generator, kind):
    """Of 300 intervals of 80 % about 240 contain the mean (n = 40 and skewed: a little fewer)."""
    hits = 0
    for _ in range(300):
        found = mean_interval(generator.exponential(size=40), level=0.8, kind=kind, resamples=500)
        assert found.low <= found.estimate <= found.high
        hits += found.low <= 1 <= found.high
    assert 210 <= hits <= 264


def test_intervals_are_seeded_and_shrink(generator):
    values = generator.normal(size=400)
    assert mean_interval(values, seed=1) == mean_interval(values, seed=1)
    assert mean_interval(values, seed=1) != mean_interval(values, seed=2)
    few, many = mean_interval(values[:25]), mean_interval(values)
    assert many.high - many.low < few.high - few.low
    # close to the normal interval
    half = 1.96 * values.std(ddof=1) / 20
    assert many.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert many.high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_a_mean_is_a_pooled_ratio_of_equal_wholes(generator):
    values = generator.random(30)
    np.testing.assert_allclose(
        [mean_interval(values).low, mean_interval(values).high],
        [
            pooled_interval(shares(3 * values, [3] * 30)).low,
            pooled_interval(shares(3 * values, [3] * 30)).high,
        ],
    )


@pytest.mark.parametrize("kind", ["bca", "percentile"])
def test_small_inputs(kind):
    nothing = mean_interval([], kind=kind)
    assert math.isnan(nothing.estimate) and math.isnan(nothing.low) and nothing.count == 0
    one = mean_interval([0.3], kind=kind)
    assert one.estimate == 0.3 and math.isnan(one.low) and math.isnan(one.high)
    equal = mean_interval([0.1] * 7, kind=kind)
    assert equal.low == equal.estimate == equal.high == pytest.approx(0.1)
    assert mean_interval([0.0] * 3, kind=kind).high == 0
    two = mean_interval([0.0, 1.0], kind=kind)
    assert (two.estimate, two.low, two.high) == (0.5, 0, 1)
    pooled = pooled_interval(
        shares([1, 2, 4], [2, 4, 8]), kind=kind
    )  # every example has the same ratio
    assert pooled.low == pooled.high == 0.5
    rare = mean_interval([0.0] * 50 + [1.0], kind=kind)  # as bad as skewness gets
    assert 0 <= rare.low <= rare.estimate <= rare.high <= 1


def test_missing_numbers_are_left_out_and_counted():
    found = mean_interval([1.0, NAN, 2.0, NAN, 4.0])
    assert (found.count, found.excluded) == (3, 2)
    assert found == type(found)(*[*vars(mean_interval([1.0, 2.0, 4.0])).values()][:4], 2)
    pooled = pooled_interval([Share(1, 2), Share(0, 0), Share(2, 3), Share(NAN, 1)])
    assert (pooled.estimate, pooled.count, pooled.excluded) == (3 / 5, 2, 2)
    assert pooled_interval([Share(0, 0)]).excluded == 1


def test_bad_questions_are_refused():
    for bad in (
        lambda: mean_interval([1.0, 2.0], level=1.0),
        lambda: mean_interval([1.0, 2.0], kind="normal"),
        lambda: mean_interval([1.0, 2.0], resamples=0),
        lambda: mean_interval([1.0, math.inf]),
        lambda: mean_interval([[1.0, 2.0]]),
        lambda: pooled_interval([Share(1, -1)]),
        lambda: permutation_test([1.0], [1.0, 2.0]),
        lambda: pooled_permutation_test([Share(1, 2)], []),
        lambda: holm([0.5, 1.5]),
    ):
        with pytest.raises(InputError):
            bad()
