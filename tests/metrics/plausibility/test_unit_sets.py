"""Scores of sets of units, by hand and against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.metrics.plausibility import (
    f1,
    iou,
    overlap,
    precision,
    recall,
)
from tests.helpers.plausibility import random_masks

# -- sets ---------------------------------------------------------------------------------------------------


def test_set_scores_by_hand():
    counts = overlap([1, 1, 0, 0, 1], [0, 1, 1, 1, 1])  # in common: units 1 and 4
    assert (precision(counts), recall(counts), iou(counts)) == (2 / 3, 2 / 4, 2 / 5)
    assert f1(counts) == pytest.approx(2 * (2 / 3) * (1 / 2) / (2 / 3 + 1 / 2))


def test_set_scores_are_those_of_scikit_learn():
    sklearn = pytest.importorskip("sklearn.metrics")
    for _, chosen, gold in random_masks():
        counts = overlap(chosen, gold)
        p, r, f, _ = sklearn.precision_recall_fscore_support(
            gold, chosen, average="binary", zero_division=0
        )
        j = sklearn.jaccard_score(gold, chosen, zero_division=0)
        np.testing.assert_allclose(
            [precision(counts), recall(counts), f1(counts), iou(counts)], [p, r, f, j]
        )


def test_empty_choice_is_zero_and_missing_gold_is_undefined():
    nothing = overlap([0, 0], [1, 0])
    assert precision(nothing) == recall(nothing) == f1(nothing) == iou(nothing) == 0
    missing = overlap([1, 0], [0, 0])
    assert all(math.isnan(score(missing)) for score in (precision, recall, f1, iou))
    with pytest.raises(InputError, match="same units"):
        overlap([1, 0], [1, 0, 0])
