"""Entropy and divergences of attention, against scipy and the formulas written out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.metrics.attention import (
    jensen_shannon,
    normalised_entropy,
    permuted_attention,
    total_variation,
    uniform_attention,
)
from tests.helpers.random_arrays import sparse


def test_entropy_of_extremes():
    assert normalised_entropy([0, 0, 1, 0]) == 0
    assert normalised_entropy([0.25] * 4) == pytest.approx(1)
    assert normalised_entropy([1.0]) == 0
    assert normalised_entropy([2.0, 2.0]) == pytest.approx(1)  # made to add up to 1
    assert math.isnan(normalised_entropy([0.0, 0.0]))  # no distribution
    with pytest.raises(InputError, match="negative"):
        normalised_entropy([0.5, -0.5])


def test_entropy_literally_and_by_scipy(generator):
    for _ in range(30):
        p = sparse(generator, int(generator.integers(2, 9)))
        expected = -sum(x * math.log(x) for x in p if x > 0) / math.log(len(p))
        assert normalised_entropy(p) == pytest.approx(expected)
        assert 0 <= normalised_entropy(p) <= 1
    stats = pytest.importorskip("scipy.stats")
    p = sparse(generator, 5, 7)
    np.testing.assert_allclose(normalised_entropy(p), stats.entropy(p, axis=-1) / np.log(7))


def test_entropy_ignores_padding(generator):
    p = sparse(generator, 5)
    padded = np.append(p, [0.3, 0.0])  # garbage on padding does not count either
    assert normalised_entropy(padded, [1] * 5 + [0, 0]) == pytest.approx(normalised_entropy(p))
    assert normalised_entropy([[0.5, 0.5], [1, 0]], [[1, 1], [1, 0]]).tolist() == [1, 0]


def test_jensen_shannon_against_scipy_and_literally(generator):
    for _ in range(30):
        p, q = sparse(generator, 2, int(generator.integers(1, 8)))
        m = (p + q) / 2
        literal = sum(0.5 * a * math.log(a / c) for a, c in zip(p, m, strict=True) if a)
        literal += sum(0.5 * b * math.log(b / c) for b, c in zip(q, m, strict=True) if b)
        assert jensen_shannon(p, q) == pytest.approx(literal, abs=1e-12)
    distance = pytest.importorskip("scipy.spatial.distance")
    p, q = sparse(generator, 2, 20, 6)
    np.testing.assert_allclose(
        jensen_shannon(p, q), distance.jensenshannon(p, q, axis=-1) ** 2, atol=1e-12
    )


def test_jensen_shannon_is_symmetric_finite_and_bounded(generator):
    p, q = sparse(generator, 2, 200, 6)
    value = jensen_shannon(p, q)
    np.testing.assert_array_equal(value, jensen_shannon(q, p))
    assert np.isfinite(value).all() and (value >= 0).all() and (value <= math.log(2)).all()
    assert jensen_shannon([1, 0], [0, 1]) == pytest.approx(math.log(2))
    assert jensen_shannon(p[0], p[0]) == 0
    assert jensen_shannon(p[0], q[0]) > 0
    assert jensen_shannon([5e-324, 1], [0, 1]) == pytest.approx(0, abs=1e-300)
    assert math.isnan(jensen_shannon([0, 0], [1, 0]))
    order = generator.permutation(6)
    np.testing.assert_allclose(jensen_shannon(p[:, order], q[:, order]), value)
    assert jensen_shannon([0.5, 0.5, 9], [0.5, 0.5, 1], [1, 1, 0]) == 0
    with pytest.raises(InputError, match="same tokens"):
        jensen_shannon([0.5, 0.5], [1])


def test_total_variation(generator):
    p, q = sparse(generator, 2, 10, 4)
    expected = [
        max(abs(a[list(s)].sum() - b[list(s)].sum()) for s in subsets(4))
        for a, b in zip(p, q, strict=True)
    ]
    np.testing.assert_allclose(
        total_variation(p, q), expected
    )  # the largest difference of any event
    np.testing.assert_array_equal(total_variation(p, q), total_variation(q, p))
    assert total_variation([0.7, 0.3], [0.4, 0.6]) == pytest.approx(0.3)
    assert total_variation([1, 0], [0, 1]) == 1
    with pytest.raises(InputError, match="every class"):
        total_variation([0.7], [0.4])


def subsets(n):
    return [[i for i in range(n) if bits >> i & 1] for bits in range(1 << n)]


def test_uniform_attention():
    found = uniform_attention([[1, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_allclose(found, [[1 / 3, 1 / 3, 1 / 3, 0], [0, 1, 0, 0], [0, 0, 0, 0]])


def test_permuted_attention(generator):
    mask = np.array([[0, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1]], bool)
    weights = np.where(mask, generator.random((2, 8)), 0)
    found = permuted_attention(weights, mask, seed=3)
    np.testing.assert_array_equal(np.sort(found), np.sort(weights))
    assert (found[~mask] == 0).all() and (found != weights).any()
    np.testing.assert_array_equal(found, permuted_attention(weights, mask, seed=3))
    assert (found != permuted_attention(weights, mask, seed=4)).any()
    np.testing.assert_array_equal(found[0], permuted_attention(weights[0], mask[0], seed=3))
    with pytest.raises(InputError, match="lost"):
        permuted_attention(weights, mask & False)


def test_permutations_are_uniform():
    """Each of the six orders of three weights comes about equally often."""
    counts: dict[tuple, int] = {}
    for seed in range(1200):
        order = tuple(permuted_attention([1, 2, 3], seed=seed))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6 and min(counts.values()) > 150


def test_no_words_and_a_mask_that_does_not_fit():
    assert permuted_attention([], []).shape == (0,)
    with pytest.raises(
        InputError, match=r"A mask of the shape \(2,\) does not fit weights of \(3,\)"
    ):
        permuted_attention([0.2, 0.3, 0.5], [True, False])
    with pytest.raises(InputError, match="does not fit"):
        jensen_shannon([0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [True, True])
