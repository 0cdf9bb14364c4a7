"""The record of an evaluation."""

from __future__ import annotations

from dataclasses import replace

from raison.core.evaluation import target_probability
from raison.core.findings import PredictionSummary


def test_the_probability_of_another_class_is_not_the_targets():
    other = PredictionSummary("good", is_target=False, probability=0.4)
    assert target_probability(other) is None
    assert target_probability(replace(other, is_target=True)) == 0.4
    assert target_probability(replace(other, target_probability=0.002)) == 0.002
