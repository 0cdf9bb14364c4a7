"""`ExternalMethod` and `SilentModel`: what stands for the method and the model of explanations made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from raison.core.errors import InputError
from raison.core.records import Encoding, Example
from raison.core.spec import Spec
from raison.methods.base import Answer, Batch, Method
from raison.models.protocol import Model
from raison.models.tasks.function import Function, axis_of_words
from raison.studies.exchange.external_explanation import ExternalExplanation
from raison.studies.exchange.placement import place_on_units

__all__ = ["ExternalMethod", "SilentModel"]


@dataclass(frozen=True)
class ExternalMethod(Method):
    """Explanations that were made elsewhere, as a method: it knows its texts and no others."""

    explanations: Mapping[str, ExternalExplanation] = field(
        default_factory=dict
    )  # by the ids of texts
    title: str = "elsewhere"
    name = "elsewhere"
    axis = "unit"

    def spec(self) -> Spec:
        return Spec(self.title)

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        answers = []
        for encoding, units in zip(batch.encodings, batch.units, strict=True):
            if encoding.id not in self.explanations:
                raise InputError(
                    f"{self.title} has no explanation of {encoding.id!r}: give every method the same texts."
                )
            placed = place_on_units(self.explanations[encoding.id], encoding, units)
            diagnostics: dict[str, object] = (
                {"unplaced": placed.unplaced} if placed.unplaced else {}
            )
            answers.append(Answer(placed.scores, selected=placed.selected, diagnostics=diagnostics))
        return answers


class SilentModel(Function):
    """A model that says nothing, about texts and pairs."""

    def __init__(self) -> None:
        super().__init__(no_external_scores, "silent", ["none", "any"])

    def encode_one(self, example: Example) -> Encoding:
        return axis_of_words(example)


def no_external_scores(texts: list[str]) -> np.ndarray:
    return np.zeros((len(texts), 2))
