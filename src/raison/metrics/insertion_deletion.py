"""Areas under the curves of insertion and deletion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.spec import whole
from raison.metrics.base import Asking, Kept, Metric, Subject, metric
from raison.metrics.curves import ladder, only_first, share_of, without_first

__all__ = ["Deletion", "Insertion"]


def area(counts: np.ndarray, values: np.ndarray) -> float:
    """Mean height of the curve over the share of units, by the trapezoid rule."""
    return float(((values[1:] + values[:-1]) / 2 * np.diff(counts)).sum() / counts[-1])


@metric("deletion")
@dataclass(frozen=True)
class Deletion(Metric):
    """Mean probability of the target while units are removed, the most important first: less is better.

    ∫ p(x without the best s·u units) ds (Petsiuk et al. 2018).
    """

    paper = "Petsiuk et al. 2018"
    keys = ("deletion", "deletion_curve")
    higher = False
    probable_span = (0.0, 1.0)
    needs = frozenset({"score"})

    steps: int = 20  # at most; fewer where there are fewer units

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1)

    def ask(self, subject: Subject) -> Asking:
        counts = ladder(len(subject.units), self.steps)
        said = yield Kept(without_first(subject, counts))
        return {"deletion": area(counts, said.value), "deletion_curve": share_of(counts, said.value, self.steps)}


@metric("insertion")
@dataclass(frozen=True)
class Insertion(Metric):
    """Mean probability of the target while units come, the most important first.

    ∫ p(the best s·u units) ds (Petsiuk et al. 2018).
    """

    paper = "Petsiuk et al. 2018"
    keys = ("insertion", "insertion_curve")
    higher = True
    probable_span = (0.0, 1.0)
    needs = frozenset({"score"})

    steps: int = 20  # at most; fewer where there are fewer units

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1)

    def ask(self, subject: Subject) -> Asking:
        counts = ladder(len(subject.units), self.steps)
        said = yield Kept(only_first(subject, counts))
        return {"insertion": area(counts, said.value), "insertion_curve": share_of(counts, said.value, self.steps)}
