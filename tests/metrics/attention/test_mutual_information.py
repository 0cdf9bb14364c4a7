"""Mutual information, against scikit-learn and the formula written out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.metrics.attention import (
    information_of_states,
    mutual_information,
    shuffled_information,
)
from tests.helpers.random_arrays import blobs


def test_information_literally(generator):
    for _ in range(20):
        a, b = generator.integers(0, 4, (2, 30)).tolist()
        expected = 0.0
        for i in set(a):
            for j in set(b):
                both = sum(1 for x, y in zip(a, b, strict=True) if (x, y) == (i, j)) / 30
                if both:
                    expected += both * math.log(both / (a.count(i) / 30 * b.count(j) / 30))
        assert mutual_information(a, b) == pytest.approx(expected)


def test_information_is_scikit_learns(generator):
    sklearn = pytest.importorskip("sklearn.metrics")
    for k in (1, 2, 10, 300):
        a, b = generator.integers(0, k, (2, 500))
        assert mutual_information(a, b) == pytest.approx(sklearn.mutual_info_score(a, b), abs=1e-12)


def test_information_of_extremes(generator):
    a = generator.integers(0, 7, 400)
    entropy = -sum(p * math.log(p) for p in np.bincount(a) / 400)
    assert mutual_information(a, a) == pytest.approx(entropy)
    assert mutual_information(a, generator.permutation(7)[a]) == pytest.approx(
        entropy
    )  # names do not matter
    b = generator.integers(0, 3, 400)
    assert mutual_information(a, b) == pytest.approx(mutual_information(b, a))
    assert mutual_information(a, b) <= math.log(3)
    assert mutual_information(a, np.zeros(400)) == 0
    assert mutual_information(["x", "y"], ["u", "v"]) == pytest.approx(math.log(2))
    assert math.isnan(mutual_information([], []))


def test_information_of_independent_labels_is_the_bias(generator):
    k, n = 20, 4000
    a, b = generator.integers(0, k, (2, n))
    bias = shuffled_information(a, b, seed=1)
    assert bias == pytest.approx((k - 1) ** 2 / (2 * n), rel=0.15)
    assert mutual_information(a, b) == pytest.approx(bias, rel=0.25)
    assert shuffled_information(a, b, seed=1) == bias
    assert shuffled_information(a, a) < 0.1 < mutual_information(a, a)


def test_information_of_states(generator):
    """States that keep the input have the entropy of the words; states that forgot it have the bias."""
    word, inputs = blobs(generator, n=1500, k=8)
    kept = information_of_states(inputs, inputs @ generator.normal(size=(8, 3)), k=8)
    lost = information_of_states(inputs, generator.normal(size=(1500, 3)), k=8)
    assert (
        kept.value == pytest.approx(mutual_information(word, word), rel=0.2)
        and kept.value > 10 * kept.bias
    )
    assert lost.value == pytest.approx(lost.bias, rel=0.5)
    assert (kept.pairs, kept.k, kept.used) == (1500, 8, (8, 8))
    assert information_of_states(inputs, inputs).k == 1 + 17  # (k − 1)² / 2N ≤ 0.1
    with pytest.raises(InputError, match="pairs"):
        information_of_states(inputs, inputs[1:])
