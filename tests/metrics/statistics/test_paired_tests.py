"""Permutation tests against SciPy and against all permutations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from raison.metrics.base import Share
from raison.metrics.statistics import (
    permutation_test,
    pooled_permutation_test,
)
from tests.helpers.statistics import NAN, shares

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
        (a, b),
        statistic,
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=True,
        rng=np.random.default_rng(1),
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
    found = [
        permutation_test(*generator.normal(size=(2, 20)), resamples=400, seed=i).p
        for i in range(400)
    ]
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
    parts = wholes * generator.random((2, n)) ** np.array(
        [[0.7], [1.0]]
    )  # no pair is equal: each has a sign
    bits = np.unpackbits(
        np.frombuffer(np.random.default_rng(seed).bytes((count * n + 7) // 8), np.uint8)
    )
    swaps = bits[: count * n].reshape(count, n).astype(bool)

    def gap(swap):
        mine = [1 if swapped else 0 for swapped in swap]
        one, two = ([side if first else 1 - side for side in mine] for first in (True, False))
        above, below = (
            [sum(table[s][k] for k, s in enumerate(rows)) for rows in (one, two)]
            for table in (parts, wholes)
        )
        return above[0] / below[0] - above[1] / below[1]

    def moved(swap):
        return sum(
            (-d if swapped else d) for d, swapped in zip(parts[0] - parts[1], swap, strict=True)
        )

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
    parts = [
        generator.binomial(w.astype(int), p).astype(float)
        for w, p in zip(wholes, (0.45, 0.35), strict=True)
    ]

    def gap(one, two, axis=-1):
        """Each number holds a part and a whole: part + whole / 1000 keeps both through a swap."""
        whole = lambda x: np.round((x % 1) * 1000)  # noqa: E731
        ratio = lambda x: np.floor(x).sum(axis) / whole(x).sum(axis)  # noqa: E731
        return ratio(one) - ratio(two)

    packed = [p + w / 1000 for p, w in zip(parts, wholes, strict=True)]
    theirs = stats.permutation_test(
        packed,
        gap,
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=True,
        rng=np.random.default_rng(1),
    )
    ours = pooled_permutation_test(
        *(shares(p, w) for p, w in zip(parts, wholes, strict=True)), resamples=20_000
    )
    assert 0.001 < theirs.pvalue < 0.5 and ours.p == pytest.approx(theirs.pvalue, abs=0.02)


def test_pooled_permutations_of_equal_wholes_are_those_of_means(generator):
    a, b = generator.random((2, 10))
    p = pooled_permutation_test(shares(a, np.ones(10)), shares(b, np.ones(10))).p
    assert p == pytest.approx(permutation_test(a, b).p)


def test_pooled_pairs_that_are_missing():
    found = pooled_permutation_test(
        [Share(1, 2), Share(0, 0), Share(1, 1)], [Share(0, 2), Share(1, 1), Share(0, 0)]
    )
    assert (found.count, found.excluded, found.difference) == (1, 2, 0.5)
    nothing = pooled_permutation_test([Share(0, 0)], [Share(1, 1)])
    assert nothing.p == 1 and math.isnan(nothing.difference) and nothing.excluded == 1
