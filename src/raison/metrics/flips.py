"""How much must go until the model decides otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.metrics.base import Asking, Kept, Metric, Subject, metric
from raison.metrics.curves import without_first

__all__ = ["DecisionFlip", "DecisionFlipFirst"]


@metric("decision_flip")
@dataclass(frozen=True)
class DecisionFlip(Metric):
    """Share of the units that have to be removed, the most important first, until the prediction changes.

    min{k : argmax(x without the best k units) ≠ argmax(x)} / u, and 1 if it never does: less is better (Serrano & Smith
    2019). For a written text, when any of its tokens is no longer what the model would write.
    """

    paper = "Serrano & Smith 2019"
    keys = ("decision_flip",)
    higher = False
    span = (0.0, 1.0)
    needs = frozenset({"score", "choice"})

    def ask(self, subject: Subject) -> Asking:
        size = len(subject.units)
        said = yield Kept(without_first(subject, range(size + 1)))
        flipped = np.flatnonzero((said.predicted != said.predicted[0]).any(-1))
        return {"decision_flip": float(flipped[0] / size) if len(flipped) else 1.0}


@metric("decision_flip_first")
@dataclass(frozen=True)
class DecisionFlipFirst(Metric):
    """Whether the prediction changes when the single most important unit is removed.

    1[argmax(x without the best unit) ≠ argmax(x)] (Chrysostomou & Aletras 2021).
    """

    paper = "Chrysostomou & Aletras 2021"
    keys = ("decision_flip_first",)
    higher = True
    span = (0.0, 1.0)
    needs = frozenset({"score", "choice"})

    def ask(self, subject: Subject) -> Asking:
        said = yield Kept(without_first(subject, (0, 1)))
        return {"decision_flip_first": float((said.predicted[1] != said.predicted[0]).any())}
