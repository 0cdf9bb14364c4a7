"""Position scores: by place in the text alone, what a real method has to beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.errors import InputError
from raison.core.parameters import check_in_range
from raison.methods.base import Answer, Batch, Method, method
from raison.models.protocol import Model

__all__ = ["Position"]


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
        check_in_range("power", self.power, 0)

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        answers = []
        for units in batch.units:
            places = np.arange(1, len(units) + 1)
            scores = (places / max(1, len(units))) ** self.power
            if self.favours == "start":
                scores = scores[::-1]
            answers.append(Answer(scores))
        return answers
