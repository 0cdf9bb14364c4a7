"""Resamples against literal code."""

from __future__ import annotations

import time

import numpy as np

from raison.metrics.statistics import (
    mean_interval,
    pooled_interval,
)
from raison.metrics.statistics.bootstrap import resampled_ratios
from tests.helpers.statistics import shares


def test_resamples_literally(generator):
    """Each resample is a ratio of sums over examples drawn with replacement."""
    part, whole = generator.random(5), generator.random(5) + 0.5
    drawn = np.random.default_rng(7).integers(0, 5, (50, 5))
    expected = [sum(part[i] for i in row) / sum(whole[i] for i in row) for row in drawn]
    np.testing.assert_allclose(resampled_ratios(part, whole, 50, 7), expected)
    expected = [np.mean([part[i] for i in row]) for row in drawn]
    np.testing.assert_allclose(resampled_ratios(part, np.ones(5), 50, 7), expected)


def test_resampling_in_pieces_is_the_same(generator, monkeypatch):
    part, whole = generator.random(20), generator.random(20) + 0.5
    at_once = resampled_ratios(part, whole, 300, 1)
    monkeypatch.setattr("raison.metrics.statistics.bootstrap.CELLS", 70)
    np.testing.assert_array_equal(resampled_ratios(part, whole, 300, 1), at_once)


def test_ten_thousand_resamples_of_a_thousand_examples_are_quick(generator):
    part, whole = generator.random(1000), generator.random(1000) + 1
    begin = time.process_time()
    mean_interval(part)
    middle = time.process_time()
    pooled_interval(shares(part, whole))
    assert (
        middle - begin < 1.5 and time.process_time() - middle < 1.5
    )  # about 0.1 and 0.2 s on an idle core
