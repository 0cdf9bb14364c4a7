"""Random scores: what a real method has to beat."""

from __future__ import annotations

from dataclasses import dataclass

from raison.methods.base import Answer, Batch, Method, method
from raison.models.protocol import Model

__all__ = ["Random"]


@method("random")
@dataclass(frozen=True)
class Random(Method):
    """Uniform random scores, seeded by the example's content."""

    signed = False
    axis = "unit"

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        answers = []
        for index, units in enumerate(batch.units):
            generator = batch.generator(index)
            answers.append(Answer(generator.random(len(units))))
        return answers
