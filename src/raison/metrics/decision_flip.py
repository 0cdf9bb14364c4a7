"""Decision flip: how much must go until the model decides otherwise."""

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

__all__ = ["DecisionFlip", "DecisionFlipFirst"]


@metric("decision_flip")
@dataclass(frozen=True)
class DecisionFlip(Metric):
    """Share of the units that have to be removed, the most important first, until the prediction changes.

    min{k : argmax(x without the best k units) ≠ argmax(x)} / u, and 1 if it never does: less is better (Serrano & Smith
    2019). For a written text, when any of its tokens is no longer what the model would write.
    """

    paper = "Serrano & Smith 2019"
    keys = (MetricKey("decision_flip", "lower", range=FROM_0_TO_1),)
    needs = frozenset({"score", "choice"})

    def ask(self, subject: Subject) -> MetricQuestions:
        size = len(subject.units)
        sets = remove_most_important(subject, range(size + 1))
        answers = yield KeptSets(sets)

        before = answers.predicted[0]
        changed = (answers.predicted != before).any(-1)  # [n]
        counts = np.flatnonzero(changed)
        if not len(counts):
            return {"decision_flip": 1.0}
        return {"decision_flip": float(counts[0] / size)}


@metric("decision_flip_first")
@dataclass(frozen=True)
class DecisionFlipFirst(Metric):
    """Whether the prediction changes when the single most important unit is removed.

    1[argmax(x without the best unit) ≠ argmax(x)] (Chrysostomou & Aletras 2021).
    """

    paper = "Chrysostomou & Aletras 2021"
    keys = (MetricKey("decision_flip_first", "higher", range=FROM_0_TO_1),)
    needs = frozenset({"score", "choice"})

    def ask(self, subject: Subject) -> MetricQuestions:
        sets = remove_most_important(subject, (0, 1))
        answers = yield KeptSets(sets)
        before, after = answers.predicted
        changed = (after != before).any()
        return {"decision_flip_first": float(changed)}
