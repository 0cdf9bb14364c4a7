"""Effect sizes against literal code and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raison.metrics.statistics import (
    cliffs_delta,
    cohens_d,
    superiority,
)
from tests.helpers.statistics import NAN

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
    assert (
        cohens_d([1.1, 2.1, 3.1], [1, 2, 3]) == math.inf and cohens_d([0, 0], [1, 1]) == -math.inf
    )
    assert math.isnan(cohens_d([1], [0])) and math.isnan(cohens_d([], []))
    assert cliffs_delta([3, 4], [1, 2]) == 1 and cliffs_delta([1], [1]) == 0
    assert math.isnan(cliffs_delta([], [1])) and math.isnan(cliffs_delta([NAN], [1]))
    assert (
        superiority([1], [0]) == 1
        and superiority([1], [1]) == 0.5
        and math.isnan(superiority([], []))
    )
    assert superiority([1, NAN, 0], [0, 1, NAN]) == 1
    assert cohens_d([1, 3, NAN], [0, 0, 5]) == pytest.approx(2 / math.sqrt(2))
