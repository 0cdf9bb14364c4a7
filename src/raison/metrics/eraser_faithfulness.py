"""Comprehensiveness and sufficiency (ERASER): can the model do without the rationale, and does it suffice?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.errors import InputError
from raison.metrics.base import (
    FROM_0_TO_1,
    FROM_MINUS_1_TO_1,
    KeptSets,
    Metric,
    MetricKey,
    MetricQuestions,
    Subject,
    metric,
)
from raison.metrics.metric_subject import (
    keep_most_important,
    kept_sets_of_all_and_nothing,
    rationale_sizes_of_subject,
    remove_most_important,
)

__all__ = ["Comprehensiveness", "Sufficiency"]

ERASER_SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)  # ERASER's bins


def check_eraser_shares(shares: tuple[float, ...]) -> None:
    """Refuse what is no tuple of shares of a text."""
    some = isinstance(shares, tuple) and len(shares) > 0
    if not some or not all(map(is_eraser_share, shares)):
        raise InputError(
            f"shares are numbers above 0 and at most 1, such as (0.1, 0.5), not {shares}."
        )


def is_eraser_share(value: object) -> bool:
    """Whether a value is a number above 0 and at most 1."""
    if not isinstance(value, (int, float)):
        return False
    return 0 < value <= 1


@metric("comprehensiveness")
@dataclass(frozen=True)
class Comprehensiveness(Metric):
    """How much probability the target loses when the rationale is removed.

    mean over q of p(x) − p(x without the best ⌈q·u⌉ units), or without the selected units where a rationale was
    selected (DeYoung et al. 2020). normalised_comprehensiveness = that / max(0, p(x) − p(∅)), each q clipped to
    0…1; 0 where removing everything changes nothing (Carton et al. 2020).
    """

    paper = "DeYoung et al. 2020"
    keys = (
        MetricKey("comprehensiveness", "higher", range_of_probabilities=FROM_MINUS_1_TO_1),
        MetricKey("normalised_comprehensiveness", "higher", range=FROM_0_TO_1),
    )
    needs = frozenset({"score"})

    shares: tuple[float, ...] = ERASER_SHARES  # of the units, for methods that only rank them

    def __post_init__(self) -> None:
        check_eraser_shares(self.shares)

    def ask(self, subject: Subject) -> MetricQuestions:
        counts = rationale_sizes_of_subject(subject, self.shares)
        without_rationale = remove_most_important(subject, counts)
        answers = yield KeptSets(
            np.concatenate([kept_sets_of_all_and_nothing(subject), without_rationale])
        )

        whole, nothing, *_ = answers.value
        losses = whole - answers.value[2:]
        largest_loss = max(0.0, whole - nothing)
        normalised = 0.0
        if largest_loss > 0:
            shares = np.clip(losses / largest_loss, 0, 1)
            normalised = float(shares.mean())
        return {
            "comprehensiveness": float(losses.mean()),
            "normalised_comprehensiveness": normalised,
        }


@metric("sufficiency")
@dataclass(frozen=True)
class Sufficiency(Metric):
    """How much probability the target loses when only the rationale is kept: less is better.

    mean over q of p(x) − p(the best ⌈q·u⌉ units), or p(the selected units) where a rationale was selected (DeYoung et
    al. 2020). normalised_sufficiency = (S(R) − S(∅)) / (1 − S(∅)) with S(R) = 1 − max(0, p(x) − p(R)), each q
    clipped to 0…1: more is better; 1 where nothing is enough already (Carton et al. 2020).
    """

    paper = "DeYoung et al. 2020"
    keys = (
        MetricKey("sufficiency", "lower", range_of_probabilities=FROM_MINUS_1_TO_1),
        MetricKey("normalised_sufficiency", "higher", range=FROM_0_TO_1),
    )
    needs = frozenset({"score"})

    shares: tuple[float, ...] = ERASER_SHARES  # of the units, for methods that only rank them

    def __post_init__(self) -> None:
        check_eraser_shares(self.shares)

    def ask(self, subject: Subject) -> MetricQuestions:
        counts = rationale_sizes_of_subject(subject, self.shares)
        rationale_alone = keep_most_important(subject, counts)
        answers = yield KeptSets(
            np.concatenate([kept_sets_of_all_and_nothing(subject), rationale_alone])
        )

        whole, nothing, *_ = answers.value
        losses = whole - answers.value[2:]
        largest_loss = max(0.0, whole - nothing)
        normalised = 1.0
        if largest_loss > 0:
            lost_shares = np.maximum(0, losses) / largest_loss
            shares = np.clip(1 - lost_shares, 0, 1)
            normalised = float(shares.mean())
        return {
            "sufficiency": float(losses.mean()),
            "normalised_sufficiency": normalised,
        }
