"""Uniform scores: the same everywhere, what a real method has to beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.methods.base import Answer, Batch, Method, method
from raison.models.protocol import Model

__all__ = ["Uniform"]


@method("uniform")
@dataclass(frozen=True)
class Uniform(Method):
    """The same score for every unit.

    score_u = 1 / M for M units: what attention says that looks at everything alike. All order is left to how ties are
    broken, so a metric that ranks units shows here what it makes of ties.
    """

    signed = False
    axis = "unit"

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        answers = []
        for units in batch.units:
            share = 1 / max(1, len(units))
            answers.append(Answer(np.full(len(units), share)))
        return answers
