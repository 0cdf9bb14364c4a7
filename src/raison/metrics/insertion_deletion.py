"""Areas under the curves of insertion and deletion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.parameters import check_integer
from raison.metrics.base import (
    FROM_0_TO_1,
    KeptSets,
    Metric,
    MetricKey,
    MetricQuestions,
    Subject,
    metric,
)
from raison.metrics.metric_subject import (
    curve_at_even_shares_of_units,
    even_counts_of_units,
    keep_most_important,
    remove_most_important,
)

__all__ = ["Deletion", "Insertion"]


def area_under_curve(counts: np.ndarray, values: np.ndarray) -> float:
    """Mean height of the curve over the share of units, by the trapezoid rule."""
    before, after = values[:-1], values[1:]
    heights = (after + before) / 2
    widths = np.diff(counts)
    area = (heights * widths).sum()
    return float(area / counts[-1])


@metric("deletion")
@dataclass(frozen=True)
class Deletion(Metric):
    """Mean probability of the target while units are removed, the most important first: less is better.

    ∫ p(x without the best s·u units) ds (Petsiuk et al. 2018).
    """

    paper = "Petsiuk et al. 2018"
    keys = (
        MetricKey("deletion", "lower", range_of_probabilities=FROM_0_TO_1),
        MetricKey("deletion_curve", "lower", curve=True, range_of_probabilities=FROM_0_TO_1),
    )
    needs = frozenset({"score"})

    steps: int = 20  # at most; fewer where there are fewer units

    def __post_init__(self) -> None:
        check_integer("steps", self.steps, 1)

    def ask(self, subject: Subject) -> MetricQuestions:
        counts = even_counts_of_units(len(subject.units), self.steps)
        answers = yield KeptSets(remove_most_important(subject, counts))
        return {
            "deletion": area_under_curve(counts, answers.value),
            "deletion_curve": curve_at_even_shares_of_units(counts, answers.value, self.steps),
        }


@metric("insertion")
@dataclass(frozen=True)
class Insertion(Metric):
    """Mean probability of the target while units come, the most important first.

    ∫ p(the best s·u units) ds (Petsiuk et al. 2018).
    """

    paper = "Petsiuk et al. 2018"
    keys = (
        MetricKey("insertion", "higher", range_of_probabilities=FROM_0_TO_1),
        MetricKey("insertion_curve", "higher", curve=True, range_of_probabilities=FROM_0_TO_1),
    )
    needs = frozenset({"score"})

    steps: int = 20  # at most; fewer where there are fewer units

    def __post_init__(self) -> None:
        check_integer("steps", self.steps, 1)

    def ask(self, subject: Subject) -> MetricQuestions:
        counts = even_counts_of_units(len(subject.units), self.steps)
        answers = yield KeptSets(keep_most_important(subject, counts))
        return {
            "insertion": area_under_curve(counts, answers.value),
            "insertion_curve": curve_at_even_shares_of_units(counts, answers.value, self.steps),
        }
