"""Corrections for many comparisons, by hand and against SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raison.metrics.statistics import (
    benjamini_hochberg,
    holm,
)
from tests.helpers.statistics import NAN

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
        assert (holm(p) >= benjamini_hochberg(p) - 1e-12).all() and (
            benjamini_hochberg(p) >= p - 1e-12
        ).all()
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
