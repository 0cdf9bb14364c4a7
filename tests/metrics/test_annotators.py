"""Agreement of annotators, against scikit-learn, by hand, and as published."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.metrics.annotators import cohen_kappa, fleiss_kappa


def test_cohen_is_scikit_learns(generator):
    sklearn = pytest.importorskip("sklearn.metrics")
    for k in (2, 3, 5):
        for _ in range(10):
            a, b = generator.integers(0, k, (2, 30))
            assert cohen_kappa(a, b) == pytest.approx(sklearn.cohen_kappa_score(a, b), abs=1e-12)


def test_cohen_by_hand():
    """20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: p_o = 35/50, p_e = ½ · 3/5 + ½ · 2/5 = ½, κ = 0.4."""
    a = ["yes"] * 25 + ["no"] * 25
    b = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    assert cohen_kappa(a, b) == pytest.approx(0.4)
    assert cohen_kappa(b, a) == cohen_kappa(a, b)
    other = dict(yes=7, no=3)
    assert cohen_kappa([other[x] for x in a], [other[x] for x in b]) == pytest.approx(0.4)


def test_cohen_of_extremes():
    assert cohen_kappa([0, 1, 1], [0, 1, 1]) == 1
    assert cohen_kappa([0, 1], [1, 0]) == -1
    assert cohen_kappa([0, 0, 0], [0, 0, 0]) == 1  # agreed on everything
    assert cohen_kappa([0, 0, 0], [1, 1, 1]) == 0  # disagreed on everything, as chance would
    assert cohen_kappa([0, 0, 1], [0, 0, 0]) == 0
    assert math.isnan(cohen_kappa([], []))
    with pytest.raises(InputError):
        cohen_kappa([0], [0, 1])


def test_fleiss_by_hand():
    """Four tokens, three annotators: P_t = 1, 1/3, 1/3, 1, P̄ = 2/3; 6 of 12 labels are 1, P̄_e = 1/2; κ = 1/3."""
    labels = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]]
    assert fleiss_kappa(labels) == pytest.approx(1 / 3)


def test_fleiss_literally(generator):
    for _ in range(20):
        raters, tokens, k = (int(generator.integers(2, 6)) for _ in range(3))
        labels = generator.integers(0, k, (raters, tokens))
        same = [
            labels[i, t] == labels[j, t]
            for t in range(tokens)
            for i in range(raters)
            for j in range(i)
        ]
        chance = sum((labels == c).mean() ** 2 for c in range(k))
        if chance < 1:
            assert fleiss_kappa(labels) == pytest.approx((np.mean(same) - chance) / (1 - chance))


def test_fleiss_of_extremes():
    assert fleiss_kappa([[0, 1, 2]] * 4) == 1
    assert fleiss_kappa([[1, 1]] * 3) == 1
    assert fleiss_kappa([["a", "b"], ["b", "a"]]) == -1
    assert math.isnan(fleiss_kappa([[], []]))
    with pytest.raises(InputError, match="two annotators"):
        fleiss_kappa([[0, 1]])


def test_fleiss_published_example():
    """Ten subjects, fourteen raters, five categories: the table of Fleiss' kappa on Wikipedia gives 0.210."""
    counts = """0 0 0 0 14; 0 2 6 4 2; 0 0 3 5 6; 0 3 9 2 0; 2 2 8 1 1; 7 7 0 0 0; 3 2 6 3 0; 2 5 3 2 2; 6 5 2 1 0;
    0 2 2 3 7"""
    rows = [[int(n) for n in row.split()] for row in counts.split(";")]
    labels = np.array([np.repeat(range(5), row) for row in rows]).T
    assert round(fleiss_kappa(labels), 3) == 0.210
