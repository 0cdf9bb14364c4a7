"""What is compared, and the sentence that follows from the numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raison.metrics.statistics import mean_interval
from raison.studies.compatibility_report import (
    MarginalisedToken,
    RepeatedAtPosition,
    SubsetPerplexity,
    compatibility_verdict,
)
from raison.studies.random_parts import compare_with_smaller_parts


def test_more_context_is_compared_with_less_in_the_same_places():
    losses = [{2: 1.0, 5: 1.5, None: 3.0}, {2: 2.0, None: 2.5}, {2: 1.0, 5: 3.0, None: 1.5}]
    two, five, whole = (SubsetPerplexity(size, 1.0, 1.0, 1.0, 3) for size in (2, 5, None))
    worst = compare_with_smaller_parts(whole, [two, five], losses, 0)
    assert worst.fewer == 2 and worst.ratio == pytest.approx(np.exp(np.mean([2.0, 0.5, 0.5])))
    assert worst.ratio_low == pytest.approx(np.exp(mean_interval([2.0, 0.5, 0.5]).low))
    assert (
        compare_with_smaller_parts(whole, [two, five], [{2: 3.0, None: 1.0}] * 2, 0).ratio == 1.0
    )  # more helps


def test_the_verdict_follows_the_numbers():
    one = SubsetPerplexity(size=1, perplexity=50.0, low=40.0, high=60.0, count=9)
    whole = SubsetPerplexity(size=None, perplexity=10.0, low=8.0, high=12.0, count=9)
    good = compatibility_verdict("m", subsets=[one, whole], guess=1000.0)
    assert good.trusted and "can be taken" in good.sentence
    poor = compatibility_verdict("m", subsets=[one, whole], guess=30.0)
    assert not poor.trusted and "frequencies" in poor.sentence
    worse = replace(whole, fewer=1, ratio=1.5, ratio_low=1.2)
    told = compatibility_verdict("m", subsets=[one, worse], guess=1000.0)
    assert not told.trusted and "× 1.50" in told.sentence
    unsure = replace(whole, fewer=1, ratio=1.5, ratio_low=0.9)  # may be chance
    assert compatibility_verdict("m", subsets=[one, unsure], guess=1000.0).trusted
    repeats = [RepeatedAtPosition(position=1, alone=0.4, beside_another=0.0)]
    assert (
        "repeats"
        in compatibility_verdict(
            "m", subsets=[one, whole], guess=1000.0, repetition=repeats
        ).sentence
    )
    truth = [MarginalisedToken(kind="likeliest", token="x", true=0.9, masked=0.1, covered=1.0)]
    assert (
        "0.80 away"
        in compatibility_verdict("m", subsets=[one, whole], guess=1000.0, truth=truth).sentence
    )
