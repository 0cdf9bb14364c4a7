"""Correlation with leave-one-out: do the scores rank units as removing them one by one does?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.metrics.base import (
    FROM_MINUS_1_TO_1,
    KeptSets,
    Metric,
    MetricKey,
    MetricQuestions,
    Subject,
    metric,
)
from raison.metrics.rank_correlation import kendall_tau
from raison.models.protocol import Model

__all__ = ["LeaveOneOutCorrelation"]

UNKNOWN_ROUNDING = 1e-11  # of values whose precision nobody knows


@metric("loo_correlation")
@dataclass(frozen=True)
class LeaveOneOutCorrelation(Metric):
    """Rank correlation of the scores with what removing single units does.

    Kendall's τ-b of s_u and f(x) − f(x without u), f = what was explained (Jain & Wallace 2019; P2). 0 where one of
    them is the same for all units; effects that the model's dtype can't tell apart are tied.
    """

    paper = "Jain & Wallace 2019"
    keys = (MetricKey("loo_correlation", "higher", range=FROM_MINUS_1_TO_1),)
    needs = frozenset({"score"})

    def ask(self, subject: Subject) -> MetricQuestions:
        size = len(subject.units)
        only_each = np.eye(size + 1, size, dtype=bool)  # the last row is empty
        without_each_then_whole = ~only_each
        answers = yield KeptSets(without_each_then_whole, "value")

        whole = answers.value[-1]
        effects = whole - answers.value[:-1]
        sizes = np.abs(answers.value)
        step = rounding_of_leave_one_out(subject.model) / 10 * float(sizes.max())
        if step > 0:
            effects = np.round(effects / step)  # what only rounding tells apart is tied
        return {"loo_correlation": kendall_tau(subject.scores, effects)}


def rounding_of_leave_one_out(model: Model | None) -> float:
    """Relative size of the differences that rounding alone makes in the model's values."""
    if model is None or not model.rounding:
        return UNKNOWN_ROUNDING
    return model.rounding
