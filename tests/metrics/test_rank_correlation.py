"""Kendall's τ-b, against scipy and the formula written out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.metrics.attention import (
    kendall_defined,
    kendall_tau,
)


def test_kendall_literally(generator):
    for _ in range(60):
        n = int(generator.integers(2, 9))
        x, y = generator.integers(0, 4, (2, n)).tolist()
        same = other = tied_x = tied_y = 0
        for i in range(n):
            for j in range(i):
                a, b = x[i] - x[j], y[i] - y[j]
                same += a * b > 0
                other += a * b < 0
                tied_x += a == 0
                tied_y += b == 0
        pairs = n * (n - 1) // 2
        if tied_x < pairs and tied_y < pairs:
            expected = (same - other) / math.sqrt((pairs - tied_x) * (pairs - tied_y))
            assert kendall_tau(x, y) == pytest.approx(expected)


def test_kendall_is_scipys(generator):
    stats = pytest.importorskip("scipy.stats")
    for top in (2, 5, 1000):
        for n in (2, 3, 17, 400):
            x, y = generator.integers(0, top, (2, n)).astype(float)
            if kendall_defined(x, y):
                assert kendall_tau(x, y) == pytest.approx(
                    stats.kendalltau(x, y).statistic, abs=1e-12
                )
            else:
                assert math.isnan(stats.kendalltau(x, y).statistic)
    x, y = generator.normal(size=(2, 2500))  # more than one piece of the table of pairs
    assert kendall_tau(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


def test_kendall_of_extremes(generator):
    x = generator.normal(size=20)
    assert kendall_tau(x, x) == pytest.approx(1) and kendall_tau(x, -x) == pytest.approx(-1)
    assert kendall_tau(x, np.exp(x)) == pytest.approx(1)  # ranks alone
    assert kendall_tau([1e308, -1e308, 0], [3, 1, 2]) == 1
    assert kendall_tau([5e-324, 0], [1, 0]) == 1


def test_kendall_of_a_constant_is_0_and_says_so():
    for x, y in (([1, 1, 1], [1, 2, 3]), ([1, 2], [0, -0.0]), ([1], [2]), ([], [])):
        assert kendall_tau(x, y) == 0
        assert not kendall_defined(x, y)
    assert kendall_defined([1, 2, 2], [3, 3, 1])
    with pytest.raises(InputError):
        kendall_tau([1, math.nan], [1, 2])
    with pytest.raises(InputError):
        kendall_tau([1, 2], [1, 2, 3])
