"""AOPC and LOdds (P4): what becomes of the target while units go in the order of their importance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.parameters import check_integer
from raison.metrics.base import (
    FROM_MINUS_1_TO_1,
    KeptSets,
    Metric,
    MetricKey,
    MetricQuestions,
    Subject,
    metric,
)
from raison.metrics.metric_subject import remove_most_important, set_of_all_units

__all__ = ["AOPC", "LogOdds"]


def aopc_counts_of_removed_units(size: int, steps: int) -> np.ndarray:
    """[steps] how many units are removed: P4's shares 1/9 … 1, rounded."""
    points = np.linspace(0, 1, steps + 1)
    counts = np.rint(points[1:] * size)
    return counts.astype(int)


def aopc_kept_sets(subject: Subject, steps: int) -> np.ndarray:
    """[1 + steps, u] the whole text, then what is left of it after each step."""
    counts = aopc_counts_of_removed_units(len(subject.units), steps)
    everything = set_of_all_units(subject)
    less = remove_most_important(subject, counts)
    return np.concatenate([everything, less])


@metric("aopc")
@dataclass(frozen=True)
class AOPC(Metric):
    """Mean loss of the target's probability while the most important units are removed, a ninth at a time.

    mean over k of p(x) − p(x without the best k units), k = 11.1 %, …, 100 % of the units (P4, from Nguyen 2018). P4
    counts all tokens, special ones included, and explains the gold label: evaluate with `target=gold` and
    `units=token` for its numbers. At 100 % it is the same for all methods.
    """

    paper = "P4 section 4; Nguyen 2018"
    keys = (
        MetricKey("aopc", "higher", range_of_probabilities=FROM_MINUS_1_TO_1),
        MetricKey("aopc_curve", "higher", curve=True, range_of_probabilities=FROM_MINUS_1_TO_1),
    )
    needs = frozenset({"score"})

    steps: int = 9

    def __post_init__(self) -> None:
        check_integer("steps", self.steps, 1)

    def ask(self, subject: Subject) -> MetricQuestions:
        answers = yield KeptSets(aopc_kept_sets(subject, self.steps))
        before = answers.value[0]
        drops = before - answers.value[1:]
        return {"aopc": float(drops.mean()), "aopc_curve": drops}


@metric("lodds")
@dataclass(frozen=True)
class LogOdds(Metric):
    """Mean logarithm of the share of the target's probability that is left while units are removed: less is better.

    mean over k of ln p(x without the best k units) / p(x), with the k of `aopc` (P4, from Shrikumar et al. 2017).
    """

    paper = "P4 section 4; Shrikumar et al. 2017"
    keys = (
        MetricKey("lodds", "lower"),
        MetricKey("lodds_curve", "lower", curve=True),
    )
    needs = frozenset({"score", "probability"})

    steps: int = 9

    def __post_init__(self) -> None:
        check_integer("steps", self.steps, 1)

    def ask(self, subject: Subject) -> MetricQuestions:
        answers = yield KeptSets(aopc_kept_sets(subject, self.steps))
        before = answers.log[0]
        log_ratios = answers.log[1:] - before
        return {"lodds": float(log_ratios.mean()), "lodds_curve": log_ratios}
