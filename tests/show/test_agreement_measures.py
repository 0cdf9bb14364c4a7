"""Measures of agreement against their definitions."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from raison.show.agreement_measures import (
    MethodAgreement,
    chance_of_sharing_strongest,
    close_method_pairs,
    comparable_scores,
    count_inversions_of_scores,
    count_of_strongest_units,
    count_shared_strongest,
    kendall_tau_b,
    least_tau_alike,
    measure_agreement,
    methods_apart,
    pearson_r,
    score_ranks,
    scores_are_constant,
    spearman_rho,
)


def literal_tau(a, b):
    """Every pair of units, one after the other: the definition."""
    surplus = in_a = in_b = 0
    for i, j in combinations(range(len(a)), 2):
        x, y = np.sign(a[i] - a[j]), np.sign(b[i] - b[j])
        surplus, in_a, in_b = surplus + x * y, in_a + x * x, in_b + y * y
    return surplus / np.sqrt(in_a * in_b)


def literal_ranks(a):
    return [1 + sum(y < x for y in a) + (sum(y == x for y in a) - 1) / 2 for x in a]


def vectors(count=200):
    """Pairs of vectors of 2 to 40 scores, half of them full of ties, some with one value only."""
    random = np.random.default_rng(0)
    for case in range(count):
        size = int(random.integers(2, 41))
        few = int(random.integers(1, 5))
        one, other = random.normal(size=(2, size))
        if case % 2:
            one, other = (
                random.integers(-few, few + 1, size) / 3,
                random.integers(0, few + 1, size) * 1e-9,
            )
        yield one, other


def test_measures_are_what_their_definitions_say():
    tried = 0
    for a, b in vectors():
        if scores_are_constant(a) or scores_are_constant(b):
            assert kendall_tau_b(a, b) is spearman_rho(a, b) is pearson_r(a, b) is None
            continue
        tried += 1
        assert score_ranks(a).tolist() == literal_ranks(a)
        assert kendall_tau_b(a, b) == pytest.approx(literal_tau(a, b), abs=1e-12)
        assert spearman_rho(a, b) == pytest.approx(
            np.corrcoef(literal_ranks(a), literal_ranks(b))[0, 1], abs=1e-12
        )
        assert pearson_r(a, b) == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-12)
        assert (
            kendall_tau_b(a, a) == pytest.approx(1)
            and kendall_tau_b(a, -a) == pytest.approx(-1)
            and kendall_tau_b(b, a) == kendall_tau_b(a, b)
        )
    assert tried > 150


def test_measures_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    for a, b in vectors(400):
        if not scores_are_constant(a) and not scores_are_constant(b):
            assert kendall_tau_b(a, b) == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-12)
            assert spearman_rho(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)
            assert pearson_r(a, b) == pytest.approx(stats.pearsonr(a, b).statistic, abs=1e-12)


def test_inversions_are_counted():
    random = np.random.default_rng(1)
    for size in (1, 2, 3, 17, 100):
        places = random.integers(0, size, size)
        assert count_inversions_of_scores(places) == sum(
            places[i] > places[j] for i, j in combinations(range(size), 2)
        )


def test_measures_of_very_large_and_very_small_scores():
    one, other = np.array([1.0, 2.0, 4.0, -3.0]), np.array([1.0, 3.0, 2.0, -1.0])
    for factor in (1e-200, 1e-12, 1e200):
        assert measure_agreement(one * factor, other).r == pytest.approx(
            measure_agreement(one, other).r
        )
        assert (
            measure_agreement(one * factor, other).shared
            == measure_agreement(one, other).shared
            == 1
        )
    assert measure_agreement(np.zeros(4), other) == MethodAgreement(None, None, None, None, True)
    assert measure_agreement(np.ones(1), np.ones(1)).tau is None


def test_signs_count_where_both_have_them():
    a, b = np.array([3.0, -2.0, 0.5, 0.1]), np.array([3.0, 2.0, 0.5, 0.1])
    assert measure_agreement(a, b) == MethodAgreement(2, 1, 1, 1, True)  # by size they are the same
    assert [each.tolist() for each in comparable_scores(a, b)] == [b.tolist(), b.tolist()]
    turned = measure_agreement(a, np.array([3.0, 2.0, 0.5, -0.1]))
    assert not turned.by_size and turned.shared == 1 and turned.tau == pytest.approx((4 - 2) / 6)


def test_the_strongest_are_few_and_not_zero():
    assert [count_of_strongest_units(size) for size in (1, 2, 4, 5, 6, 12, 16, 30, 100)] == [
        1,
        1,
        2,
        2,
        3,
        3,
        4,
        6,
        20,
    ]
    assert (
        count_shared_strongest(np.array([0, 0, 5.0, 0]), np.array([0, 0, 1.0, 0]), 3) == 1
    )  # zeros are not strong together
    assert count_shared_strongest(np.array([1.0, -1, 0, 0]), np.array([1.0, 1, 0, 0]), 2) == 1


def test_what_is_shared_by_chance():
    for size in (2, 5, 11, 18, 40):
        k = count_of_strongest_units(size)
        ways = [comb(k, x) * comb(size - k, k - x) for x in range(k + 1)]
        for shared in range(k + 1):
            assert chance_of_sharing_strongest(shared, size) == pytest.approx(
                sum(ways[shared:]) / comb(size, k)
            )
    assert (
        chance_of_sharing_strongest(0, 50_000) == pytest.approx(1)
        and chance_of_sharing_strongest(10_000, 50_000) < 1e-12
    )


def test_who_is_close_and_who_is_apart():
    pairs = {
        (0, 1): (1, 0.7),
        (0, 2): (3, 0.2),
        (1, 2): (0, 0.1),
        (0, 3): (1, -0.1),
        (1, 3): (0, 0),
        (2, 3): (2, 0.2),
    }
    found = {
        pair: MethodAgreement(shared, tau, tau, tau, False) for pair, (shared, tau) in pairs.items()
    }
    found |= {(place, 4): MethodAgreement(None, None, None, None, False) for place in range(4)}
    assert close_method_pairs(found, 12) == [(0, 1), (0, 2)]  # alike in order; the same strongest
    assert methods_apart(found, 12) == [3]  # and what is constant is neither


def test_chance_is_rarely_called_alike():
    random = np.random.default_rng(2)
    for size in (8, 20, 60):
        reached = [
            kendall_tau_b(*random.random((2, size))) >= least_tau_alike(size) for _ in range(600)
        ]
        assert sum(reached) <= 0.02 * 600
    assert least_tau_alike(1) == np.inf and least_tau_alike(4) > 1 and least_tau_alike(500) == 0.3
