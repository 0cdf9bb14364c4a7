"""The own explanation of a model that explains itself: its attention, or the units that it selects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from raison.core.records import Units
from raison.methods.base import Answer, Batch, Method, method
from raison.models.protocol import Model, Selecting, SelfExplaining

__all__ = ["Own"]


@method("own")
@dataclass(frozen=True)
class Own(Method):
    """The explanation that the model itself gives: the weights of its attention, or the words that it selected.

    Nothing is asked about the target: what such a model attends to is decided before it decides. Special tokens have 0.
    A word is selected where one of its tokens is.
    """

    signed = False
    additive = True  # weights are shares: a word has those of its tokens together
    needs = frozenset({"own"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        speaker = cast("SelfExplaining", model)  # it offers "own"
        weights = speaker.own(batch.encodings)
        # asked of the object itself, which may stand for another model
        if not hasattr(model, "selected"):
            return [Answer(each) for each in weights]

        selected = cast("Selecting", model).selected(batch.encodings)
        answers = []
        for each, tokens, units in zip(weights, selected, batch.units, strict=True):
            answers.append(Answer(each, selected=units_of_tokens(units, tokens)))
        return answers


def units_of_tokens(units: Units, tokens: np.ndarray) -> np.ndarray:
    """[u] whether one of a unit's tokens is among `tokens` [t]."""
    touched = np.zeros(len(units), bool)
    touched[units.of[tokens & (units.of >= 0)]] = True
    return touched
