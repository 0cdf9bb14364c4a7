"""Infidelity: do the scores foretell what removing random sets does?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.parameters import check_integer
from raison.metrics.base import (
    NOT_NEGATIVE,
    KeptSets,
    Metric,
    MetricKey,
    MetricQuestions,
    Subject,
    metric,
)
from raison.metrics.metric_subject import set_of_all_units

__all__ = ["Infidelity"]


@metric("infidelity")
@dataclass(frozen=True)
class Infidelity(Metric):
    """How badly the scores of removed units foretell what removing them does, over random sets: less is better.

    infidelity = min_{β ≥ 0} E_S (β Σ_{u∈S} s_u − Δ_S)² / E_S Δ_S², Δ_S = f(x) − f(x without S), each unit in S with
    probability 1/2 (Yeh et al. 2019, with their optimal scaling β; divided by what zero scores would miss, so 1 = says
    nothing, 0 = exact; without β ≥ 0 reversed scores would be exact too). raw_infidelity is theirs, with β = 1 and
    undivided. For a model that never changes infidelity is 0.
    """

    paper = "Yeh et al. 2019"
    keys = (
        MetricKey("infidelity", "lower", range=NOT_NEGATIVE),
        MetricKey("raw_infidelity", "lower", range=NOT_NEGATIVE),
    )
    needs = frozenset({"score"})

    samples: int = 64  # random sets

    def __post_init__(self) -> None:
        check_integer("samples", self.samples, 1)

    def ask(self, subject: Subject) -> MetricQuestions:
        generator = subject.generator("infidelity")
        draws = generator.random((self.samples, len(subject.units)))
        removed = draws < 0.5  # [n u]
        sets = np.concatenate([set_of_all_units(subject), ~removed])
        answers = yield KeptSets(sets, "value")

        before = answers.value[0]
        effects = before - answers.value[1:]
        foretold = removed @ subject.scores
        missed = mean_square_of_infidelity(best_scaling_for_infidelity(foretold, effects) - effects)
        missed_by_zeros = mean_square_of_infidelity(effects)
        infidelity = missed / missed_by_zeros if missed_by_zeros > 0 else 0.0
        return {
            "infidelity": infidelity,
            "raw_infidelity": mean_square_of_infidelity(foretold - effects),
        }


def best_scaling_for_infidelity(foretold: np.ndarray, effects: np.ndarray) -> np.ndarray:
    """β · foretold with the β ≥ 0 that is nearest to the effects: max(0, E[foretold · effect] / E[foretold²])."""
    power = mean_square_of_infidelity(foretold)
    if not power > 0:
        return foretold
    products = foretold * effects
    beta = float(products.mean()) / power
    return foretold * max(0.0, beta)


def mean_square_of_infidelity(values: np.ndarray) -> float:
    """The mean of the squares."""
    squares = values**2
    return float(squares.mean())
