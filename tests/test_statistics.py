"""Intervals, paired tests, corrections and effect sizes, against scipy and against every case tried one by one."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.metrics.base import Share
from raison.metrics.statistics import (
    bca,
    benjamini_hochberg,
    cliffs_delta,
    cohens_d,
    holm,
    mean_interval,
    percentile,
    permutation_test,
    pooled_gap_interval,
    pooled_interval,
    pooled_permutation_test,
    superiority,
)
from raison.metrics.statistics.bootstrap import resampled_ratios
from raison.show.scoreboard import TOO_NARROW

NAN = math.nan


@pytest.fixture
def generator():
    return np.random.default_rng(0)


def shares(part, whole):
    return [Share(float(p), float(w)) for p, w in zip(part, whole, strict=True)]


# -- intervals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_are_scipys(generator, level):
    """From scipy's own resamples: the same bounds, to rounding."""
    stats = pytest.importorskip("scipy.stats")
    values = generator.exponential(size=30)  # skewed, so that bias and acceleration matter
    without = np.array([np.delete(values, i).mean() for i in range(30)])
    for name in ("percentile", "BCa"):
        theirs = stats.bootstrap(
            (values,), np.mean, n_resamples=2000, confidence_level=level, method=name, rng=np.random.default_rng(1)
        )
        found = theirs.bootstrap_distribution
        ours = percentile(found, level) if name == "percentile" else bca(found, values.mean(), without, level)
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
        (part, whole), ratio, paired=True, n_resamples=20_000, vectorized=True, rng=np.random.default_rng(1)
    )
    ours = pooled_interval(shares(part, whole), resamples=20_000)
    assert ours.estimate == pytest.approx(part.sum() / whole.sum())
    # other resamples: the bounds differ by chance alone
    np.testing.assert_allclose((ours.low, ours.high), theirs.confidence_interval, atol=0.05 * (ours.high - ours.low))


def test_pooled_gap_interval_is_scipys(generator):
    stats = pytest.importorskip("scipy.stats")
    whole, other = (generator.integers(1, 30, 40).astype(float) for _ in range(2))
    part = generator.binomial(whole.astype(int), 0.5).astype(float)
    less = generator.binomial(other.astype(int), 0.3).astype(float)

    def gap(p, w, q, v, axis=-1):
        return p.sum(axis) / w.sum(axis) - q.sum(axis) / v.sum(axis)

    theirs = stats.bootstrap(
        (part, whole, less, other), gap, paired=True, n_resamples=20_000, vectorized=True, rng=np.random.default_rng(1)
    )
    ours = pooled_gap_interval(shares(part, whole), shares(less, other), resamples=20_000)
    test = pooled_permutation_test(shares(part, whole), shares(less, other))
    assert ours.estimate == pytest.approx(gap(part, whole, less, other)) == pytest.approx(test.difference)
    np.testing.assert_allclose((ours.low, ours.high), theirs.confidence_interval, atol=0.05 * (ours.high - ours.low))


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
        expected = efron([statistic(row) for row in drawn], estimate, [statistic(rows) for rows in rest], level)
        assert found.estimate == pytest.approx(estimate, rel=1e-12)
        np.testing.assert_allclose((found.low, found.high), expected, rtol=1e-9)


def test_a_gap_of_pooled_ratios_without_enough_examples():
    one = pooled_gap_interval([Share(1, 2), Share(0, 0)], [Share(1, 4), Share(1, 1)])
    assert one.estimate == 0.25 and np.isnan(one.low) and (one.count, one.excluded) == (1, 1)
    assert pooled_gap_interval([Share(0, 0)], [Share(1, 1)]).count == 0
    same = pooled_gap_interval(shares([1, 2, 4], [2, 4, 8]), shares([1, 2, 4], [4, 8, 16]))
    assert (same.low, same.high) == (0.25, 0.25)


def test_resamples_literally(generator):
    """Each resample is a ratio of sums over examples drawn with replacement."""
    part, whole = generator.random(5), generator.random(5) + 0.5
    drawn = np.random.default_rng(7).integers(0, 5, (50, 5))
    expected = [sum(part[i] for i in row) / sum(whole[i] for i in row) for row in drawn]
    np.testing.assert_allclose(resampled_ratios(part, whole, 50, 7), expected)
    expected = [np.mean([part[i] for i in row]) for row in drawn]
    np.testing.assert_allclose(resampled_ratios(part, np.ones(5), 50, 7), expected)


def test_resampling_in_pieces_is_the_same(generator, monkeypatch):
    part, whole = generator.random(20), generator.random(20) + 0.5
    at_once = resampled_ratios(part, whole, 300, 1)
    monkeypatch.setattr("raison.metrics.statistics.bootstrap.CELLS", 70)
    np.testing.assert_array_equal(resampled_ratios(part, whole, 300, 1), at_once)


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
        [pooled_interval(shares(3 * values, [3] * 30)).low, pooled_interval(shares(3 * values, [3] * 30)).high],
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
    pooled = pooled_interval(shares([1, 2, 4], [2, 4, 8]), kind=kind)  # every example has the same ratio
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


def test_ten_thousand_resamples_of_a_thousand_examples_are_quick(generator):
    part, whole = generator.random(1000), generator.random(1000) + 1
    begin = time.process_time()
    mean_interval(part)
    middle = time.process_time()
    pooled_interval(shares(part, whole))
    assert middle - begin < 1.5 and time.process_time() - middle < 1.5  # about 0.1 and 0.2 s on an idle core


# -- paired tests -------------------------------------------------------------------------------------------


def signs_tried(a, b):
    """Every sign change by itself."""
    d = np.array(a) - np.array(b)
    least = abs(d.mean()) - 1e-9
    found = [
        abs(np.mean([s * x for s, x in zip(signs, d, strict=True)]))
        for signs in itertools.product((1, -1), repeat=len(d))
    ]
    return sum(f >= least for f in found) / len(found)


def test_exact_permutations_literally(generator):
    for n in (1, 2, 5, 8):
        a, b = generator.integers(0, 4, (2, n)) / 10  # with ties and differences of 0
        found = permutation_test(a, b)
        assert found.exact and found.p == pytest.approx(signs_tried(a, b))
        assert found.difference == pytest.approx(a.mean() - b.mean(), abs=1e-12)


def test_permutations_are_scipys(generator):
    stats = pytest.importorskip("scipy.stats")

    def statistic(x, y, axis=-1):
        return (x - y).mean(axis)

    for n in (4, 10):
        a, b = generator.normal([[0.6], [0.0]], size=(2, n))
        theirs = stats.permutation_test(
            (a, b), statistic, permutation_type="samples", n_resamples=np.inf, vectorized=True
        )
        assert permutation_test(a, b).p == pytest.approx(theirs.pvalue)
    a, b = generator.normal([[0.4], [0.0]], size=(2, 40))
    theirs = stats.permutation_test(
        (a, b), statistic, permutation_type="samples", n_resamples=20_000, vectorized=True, rng=np.random.default_rng(1)
    )
    assert permutation_test(a, b, resamples=20_000).p == pytest.approx(theirs.pvalue, abs=0.012)


def test_sampled_permutations_agree_with_all(generator, monkeypatch):
    a, b = generator.normal([[0.5], [0.0]], size=(2, 12))
    exact = permutation_test(a, b)
    monkeypatch.setattr("raison.metrics.statistics.paired_tests.EXACT", 0)
    sampled = permutation_test(a, b, resamples=20_000)
    assert exact.exact and not sampled.exact
    assert sampled.p == pytest.approx(exact.p, abs=0.012)
    assert sampled == permutation_test(a, b, resamples=20_000)
    assert sampled != permutation_test(a, b, resamples=20_000, seed=1)


def test_a_sampled_p_is_never_0():
    found = permutation_test(np.arange(1.0, 101), np.zeros(100), resamples=999)
    assert not found.exact and found.p == 1 / 1000


def test_p_is_two_sided_and_symmetric(generator):
    a, b = generator.normal(size=(2, 9))
    assert permutation_test(a, b).p == permutation_test(b, a).p
    assert permutation_test(a, b).difference == -permutation_test(b, a).difference
    assert permutation_test(np.ones(6), np.zeros(6)).p == 2 / 2**6


def test_p_under_no_difference_is_uniform(generator):
    """Of 400 comparisons of equals about 40 have p ≤ 0.1."""
    found = [permutation_test(*generator.normal(size=(2, 20)), resamples=400, seed=i).p for i in range(400)]
    assert 20 <= sum(p <= 0.1 for p in found) <= 62


def test_small_and_missing_pairs():
    nothing = permutation_test([], [])
    assert math.isnan(nothing.difference) and nothing.p == 1 and nothing.count == 0
    assert permutation_test([1.0], [0.0]).p == 1
    assert permutation_test([1.0] * 30, [1.0] * 30) == type(nothing)(0.0, 1.0, 30, 0, True)
    found = permutation_test([1.0, NAN, 3.0, 5.0], [0.0, 2.0, NAN, 1.0])
    assert (found.difference, found.count, found.excluded) == (2.5, 2, 2)
    # pairs without a difference do not count: these 100 pairs are tried exactly
    a, b = np.zeros(100), np.zeros(100)
    a[:5] = 1
    assert permutation_test(a, b) == type(nothing)(0.05, 2 / 2**5, 100, 0, True)


def test_rounding_makes_no_difference():
    """0.1 + 0.2 − 0.3 is not 0 in floating point, but the sums are equal."""
    found = permutation_test([0.1, 0.2, 0.3], [0.0, 0.0, 0.0])
    assert found.p == signs_tried([1, 2, 3], [0, 0, 0])
    mixed = permutation_test([0.1, 0.2, 0.0], [0.0, 0.0, 0.3])
    assert mixed.p == 1


def pooled_tried(first, second):
    def ratio(rows):
        return sum(s.part for s in rows) / sum(s.whole for s in rows)

    pairs = list(zip(first, second, strict=True))
    least = abs(ratio(first) - ratio(second)) - 1e-9
    found = []
    for swaps in itertools.product((False, True), repeat=len(pairs)):
        moved = [(b, a) if swap else (a, b) for (a, b), swap in zip(pairs, swaps, strict=True)]
        found.append(abs(ratio([a for a, _ in moved]) - ratio([b for _, b in moved])))
    return sum(f >= least for f in found) / len(found)


def test_pooled_permutations_literally(generator):
    for n in (1, 3, 7):
        wholes = generator.integers(1, 9, (2, n))
        parts = generator.integers(0, wholes + 1)
        first, second = shares(parts[0], wholes[0]), shares(parts[1], wholes[1])
        found = pooled_permutation_test(first, second)
        assert found.exact and found.p == pytest.approx(pooled_tried(first, second))
        assert found.difference == pytest.approx(
            parts[0].sum() / wholes[0].sum() - parts[1].sum() / wholes[1].sum(), abs=1e-12
        )


def test_sampled_permutations_literally(generator):
    """More pairs than can be tried: the signs that are drawn, one by one, and (1 + hits) / (1 + resamples)."""
    n, seed, count = 21, 3, 50
    wholes = generator.integers(1, 9, (2, n)).astype(float)
    parts = wholes * generator.random((2, n)) ** np.array([[0.7], [1.0]])  # no pair is equal: each has a sign
    bits = np.unpackbits(np.frombuffer(np.random.default_rng(seed).bytes((count * n + 7) // 8), np.uint8))
    swaps = bits[: count * n].reshape(count, n).astype(bool)

    def gap(swap):
        mine = [1 if swapped else 0 for swapped in swap]
        one, two = ([side if first else 1 - side for side in mine] for first in (True, False))
        above, below = (
            [sum(table[s][k] for k, s in enumerate(rows)) for rows in (one, two)] for table in (parts, wholes)
        )
        return above[0] / below[0] - above[1] / below[1]

    def moved(swap):
        return sum((-d if swapped else d) for d, swapped in zip(parts[0] - parts[1], swap, strict=True))

    pooled = [shares(p, w) for p, w in zip(parts, wholes, strict=True)]
    for statistic, found in (
        (gap, pooled_permutation_test(*pooled, resamples=count, seed=seed)),
        (moved, permutation_test(*parts, resamples=count, seed=seed)),
    ):
        least = abs(statistic([False] * n)) - 1e-9
        hits = sum(abs(statistic(swap)) >= least for swap in swaps)
        assert 0 < hits < count and not found.exact
        assert found.p == pytest.approx((1 + hits) / (1 + count))


def test_pooled_permutations_of_many_pairs_are_scipys(generator):
    stats = pytest.importorskip("scipy.stats")
    wholes = generator.integers(1, 30, (2, 40)).astype(float)
    parts = [generator.binomial(w.astype(int), p).astype(float) for w, p in zip(wholes, (0.45, 0.35), strict=True)]

    def gap(one, two, axis=-1):
        """Each number holds a part and a whole: part + whole / 1000 keeps both through a swap."""
        whole = lambda x: np.round((x % 1) * 1000)  # noqa: E731
        ratio = lambda x: np.floor(x).sum(axis) / whole(x).sum(axis)  # noqa: E731
        return ratio(one) - ratio(two)

    packed = [p + w / 1000 for p, w in zip(parts, wholes, strict=True)]
    theirs = stats.permutation_test(
        packed, gap, permutation_type="samples", n_resamples=20_000, vectorized=True, rng=np.random.default_rng(1)
    )
    ours = pooled_permutation_test(*(shares(p, w) for p, w in zip(parts, wholes, strict=True)), resamples=20_000)
    assert 0.001 < theirs.pvalue < 0.5 and ours.p == pytest.approx(theirs.pvalue, abs=0.02)


def test_pooled_permutations_of_equal_wholes_are_those_of_means(generator):
    a, b = generator.random((2, 10))
    p = pooled_permutation_test(shares(a, np.ones(10)), shares(b, np.ones(10))).p
    assert p == pytest.approx(permutation_test(a, b).p)


def test_pooled_pairs_that_are_missing():
    found = pooled_permutation_test([Share(1, 2), Share(0, 0), Share(1, 1)], [Share(0, 2), Share(1, 1), Share(0, 0)])
    assert (found.count, found.excluded, found.difference) == (1, 2, 0.5)
    nothing = pooled_permutation_test([Share(0, 0)], [Share(1, 1)])
    assert nothing.p == 1 and math.isnan(nothing.difference) and nothing.excluded == 1


# -- many comparisons ---------------------------------------------------------------------------------------


def test_holm_by_hand():
    """Sorted .01, .02, .03, .04: times 4, 3, 2, 1 is .04, .06, .06, .04, and never less than before."""
    np.testing.assert_allclose(holm([0.04, 0.01, 0.03, 0.02]), [0.06, 0.04, 0.06, 0.06])
    np.testing.assert_allclose(holm([0.6, 0.5]), [1.0, 1.0])


def test_benjamini_hochberg_by_hand():
    """Times 4/1, 4/2, 4/3, 4/4: .04, .04, .04, .04."""
    np.testing.assert_allclose(benjamini_hochberg([0.04, 0.01, 0.03, 0.02]), [0.04] * 4)
    np.testing.assert_allclose(benjamini_hochberg([0.001, 0.5, 0.9]), [0.003, 0.75, 0.9])


def test_corrections_literally(generator):
    for _ in range(50):
        m = int(generator.integers(1, 8))
        p = generator.integers(0, 11, m) / 10
        order = sorted(range(m), key=lambda i: p[i])
        down, up = [NAN] * m, [NAN] * m
        for rank, i in enumerate(order):
            down[i] = min(1, max((m - j) * p[order[j]] for j in range(rank + 1)))
            up[i] = min(1, min(m / (j + 1) * p[order[j]] for j in range(rank, m)))
        np.testing.assert_allclose(holm(p), down)
        np.testing.assert_allclose(benjamini_hochberg(p), up)
        assert (holm(p) >= benjamini_hochberg(p) - 1e-12).all() and (benjamini_hochberg(p) >= p - 1e-12).all()
        assert (holm(p) <= np.minimum(m * p, 1) + 1e-12).all()  # at most Bonferroni


def test_benjamini_hochberg_is_scipys(generator):
    stats = pytest.importorskip("scipy.stats")
    p = generator.random(20) ** 3
    np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p))


def test_corrections_of_nothing():
    given = np.array([0.01, NAN, 0.04])
    np.testing.assert_allclose(holm(given), [0.02, NAN, 0.04])
    np.testing.assert_allclose(benjamini_hochberg(given), [0.02, NAN, 0.04])
    assert math.isnan(given[1]) and given[0] == 0.01  # the caller's own are left alone
    assert len(holm([])) == 0


# -- effect sizes -------------------------------------------------------------------------------------------


def test_effect_sizes_literally(generator):
    for _ in range(30):
        a, b = generator.integers(0, 5, (2, int(generator.integers(3, 12)))) / 10
        d = [x - y for x, y in zip(a, b, strict=True)]
        spread = math.sqrt(sum((x - sum(d) / len(d)) ** 2 for x in d) / (len(d) - 1))
        if spread > 1e-9:
            assert cohens_d(a, b) == pytest.approx(sum(d) / len(d) / spread, abs=1e-12)
        delta = [np.sign(x - y) for x in a for y in b]
        assert cliffs_delta(a, b) == pytest.approx(np.mean(delta))
        better = [1.0 if x > y else 0.5 if x == y else 0.0 for x, y in zip(a, b, strict=True)]
        assert superiority(a, b) == pytest.approx(np.mean(better))
        assert cliffs_delta(a, b) == -cliffs_delta(b, a)
        assert superiority(a, b) == pytest.approx(1 - superiority(b, a))


def test_effect_sizes_against_scipy(generator):
    stats = pytest.importorskip("scipy.stats")
    a, b = generator.normal(size=(2, 25))
    assert cohens_d(a, b) == pytest.approx(stats.ttest_rel(a, b).statistic / 5)  # t = d √n
    u = stats.mannwhitneyu(a, b[:20]).statistic
    assert cliffs_delta(a, b[:20]) == pytest.approx(2 * u / (25 * 20) - 1)


def test_effect_sizes_of_extremes():
    assert cohens_d([1, 2], [1, 2]) == 0
    assert cohens_d([1.1, 2.1, 3.1], [1, 2, 3]) == math.inf and cohens_d([0, 0], [1, 1]) == -math.inf
    assert math.isnan(cohens_d([1], [0])) and math.isnan(cohens_d([], []))
    assert cliffs_delta([3, 4], [1, 2]) == 1 and cliffs_delta([1], [1]) == 0
    assert math.isnan(cliffs_delta([], [1])) and math.isnan(cliffs_delta([NAN], [1]))
    assert superiority([1], [0]) == 1 and superiority([1], [1]) == 0.5 and math.isnan(superiority([], []))
    assert superiority([1, NAN, 0], [0, 1, NAN]) == 1
    assert cohens_d([1, 3, NAN], [0, 0, 5]) == pytest.approx(2 / math.sqrt(2))
