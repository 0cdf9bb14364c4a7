"""Completeness gap: do the scores add up to what the whole text brings?"""

from __future__ import annotations

from dataclasses import dataclass

from raison.metrics.base import (
    FROM_0_TO_1,
    KeptSets,
    Metric,
    MetricKey,
    MetricQuestions,
    Subject,
    metric,
)
from raison.metrics.metric_subject import kept_sets_of_all_and_nothing

__all__ = ["CompletenessGap"]


@metric("completeness_gap")
@dataclass(frozen=True)
class CompletenessGap(Metric):
    """How far the scores are from adding up to what the whole text brings: less is better.

    |Σ s_u − Δ| / (|Σ s_u| + |Δ|), Δ = f(x) − f(∅), 0 where both are 0. Methods with a baseline of their own
    (integrated_gradients) tell their gap to that baseline in diagnostics["completeness_gap"]; this one compares all
    methods with the same absence.
    """

    paper = "Sundararajan et al. 2017"
    keys = (MetricKey("completeness_gap", "lower", range=FROM_0_TO_1),)
    needs = frozenset({"score"})

    def ask(self, subject: Subject) -> MetricQuestions:
        answers = yield KeptSets(kept_sets_of_all_and_nothing(subject), "value")
        whole, nothing = answers.value
        change = whole - nothing
        total = float(subject.scores.sum())

        size = abs(total) + abs(change)
        gap = abs(total - change) / size if size > 0 else 0.0
        return {"completeness_gap": gap}
