"""Monotonicity: do more important units bring more?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.metrics.base import (
    FROM_0_TO_1,
    KeptSets,
    Metric,
    MetricKey,
    MetricQuestions,
    Subject,
    metric,
)
from raison.metrics.metric_subject import remove_most_important

__all__ = ["Monotonicity"]

ROUNDING = 1e-12  # equal gains may differ in the last bit


@metric("monotonicity")
@dataclass(frozen=True)
class Monotonicity(Metric):
    """How far more important units bring more, when units are added from the least important to the most.

    monotonicity = share of steps whose gain is at least that of the step before (after Nguyen & Martínez 2020);
    monotone_steps = share of steps at which the probability does not fall (Luss et al. 2021 ask for all of them). With
    one unit both are 1.
    """

    paper = "Nguyen & Martínez 2020; Luss et al. 2021"
    keys = (
        MetricKey("monotonicity", "higher", range=FROM_0_TO_1),
        MetricKey("monotone_steps", "higher", range=FROM_0_TO_1),
    )
    needs = frozenset({"score"})

    def ask(self, subject: Subject) -> MetricQuestions:
        size = len(subject.units)
        # nothing, the last of the ranking, the last two, …, all
        removed_counts = range(size, -1, -1)
        growing = remove_most_important(subject, removed_counts)
        answers = yield KeptSets(growing)
        if size == 1:
            return {"monotonicity": 1.0, "monotone_steps": 1.0}

        gains = np.diff(answers.value)
        changes_of_gain = np.diff(gains)
        sizes = np.abs(answers.value)
        slack = ROUNDING * float(sizes.max())
        return {
            "monotonicity": float((changes_of_gain >= -slack).mean()),
            "monotone_steps": float((gains >= -slack).mean()),
        }
