"""Average precision and the mass on gold words, literally and against scikit-learn."""

from __future__ import annotations

import math

import pytest

from raison.core.errors import InputError
from raison.metrics.plausibility import (
    area_under_precision_recall_of_gold,
    mass_on_gold,
)
from tests.helpers.plausibility import random_masks

# -- scores -------------------------------------------------------------------------------------------------


def test_average_precision_is_that_of_scikit_learn():
    sklearn = pytest.importorskip("sklearn.metrics")
    for generator, _, gold in random_masks(80, seed=1):
        scores = generator.integers(0, 4, len(gold)).astype(float)  # many ties
        assert area_under_precision_recall_of_gold(scores, gold) == pytest.approx(
            sklearn.average_precision_score(gold, scores)
        )
        p, r, _ = sklearn.precision_recall_curve(gold, scores)
        assert area_under_precision_recall_of_gold(scores, gold, "trapezoid") == pytest.approx(
            sklearn.auc(r, p)
        )


def test_average_precision_literally():
    """Every threshold by itself: what is at or above it."""
    for generator, _, gold in random_masks(40, seed=2):
        scores = generator.integers(-2, 3, len(gold)).astype(float)
        points = [(0.0, 1.0)]
        step = trapezoid = 0.0
        for threshold in sorted(set(scores.tolist()), reverse=True):
            above = [g for s, g in zip(scores, gold, strict=True) if s >= threshold]
            points.append((sum(above) / gold.sum(), sum(above) / len(above)))
            (r0, p0), (r1, p1) = points[-2:]
            step += (r1 - r0) * p1
            trapezoid += (r1 - r0) * (p0 + p1) / 2
        assert area_under_precision_recall_of_gold(scores, gold) == pytest.approx(step)
        assert area_under_precision_recall_of_gold(scores, gold, "trapezoid") == pytest.approx(
            trapezoid
        )


def test_average_precision_of_equal_scores_and_of_huge_ones():
    assert area_under_precision_recall_of_gold([2.0] * 4, [1, 0, 0, 0]) == 0.25
    assert area_under_precision_recall_of_gold([-0.0, 0.0], [1, 0]) == 0.5
    assert area_under_precision_recall_of_gold([1e308, -1e308], [1, 0]) == 1
    assert math.isnan(area_under_precision_recall_of_gold([1.0, 2.0], [0, 0]))
    with pytest.raises(InputError, match="NaN"):
        area_under_precision_recall_of_gold([1.0, math.nan], [0, 1])


def test_mass_on_gold():
    assert mass_on_gold([1, -2, 3, -4], [1, 1, 0, 0]) == pytest.approx(3 / 10)
    assert mass_on_gold([1, -2, 3, -4], [1, 1, 0, 0], "positive") == pytest.approx(1 / 4)
    for constant in (-1.0, 0.0, 5e-324, 1e308):
        assert mass_on_gold([constant] * 4, [1, 0, 0, 0]) == pytest.approx(1 / 4)
        assert mass_on_gold([constant] * 4, [1, 0, 0, 0], "positive") == pytest.approx(1 / 4)
    assert mass_on_gold([-1, -2], [1, 0], "positive") == 0.5  # no mass anywhere
    assert math.isnan(mass_on_gold([1, 2], [0, 0]))
