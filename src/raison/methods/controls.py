"""Scores that know nothing of the model: what a real method has to beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.errors import InputError
from raison.core.spec import between
from raison.methods.base import Answer, Batch, Method, method
from raison.models.protocol import Model

__all__ = ["Position", "Random", "Uniform"]


@method("random")
@dataclass(frozen=True)
class Random(Method):
    """Uniform random scores, seeded by the example's content."""

    signed = False
    axis = "unit"

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return [Answer(batch.generator(i).random(len(units))) for i, units in enumerate(batch.units)]


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
        return [Answer(np.full(len(units), 1 / max(1, len(units)))) for units in batch.units]


@method("position")
@dataclass(frozen=True)
class Position(Method):
    """The nearer a unit stands to the end (or the start), the more it counts.

    score_u = (place_u / M)^power, with places 1 to M counted towards the end that is favoured. Language models lean on
    what came last and summaries on what came first; a method should know more than that.
    """

    favours: str = "end"  # end: the last unit counts most; start: the first
    power: float = 1.0  # how steep

    signed = False
    axis = "unit"

    def __post_init__(self) -> None:
        if self.favours not in ("end", "start"):
            raise InputError(f"position favours the end or the start, not {self.favours!r}.")
        between("power", self.power, 0)

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        answers = []
        for units in batch.units:
            scores = (np.arange(1, len(units) + 1) / max(1, len(units))) ** self.power
            answers.append(Answer(scores if self.favours == "end" else scores[::-1]))
        return answers
