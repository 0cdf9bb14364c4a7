"""What a model that explains itself says: its own attention, or its own selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from raison.methods.base import Answer, Batch, Method, method
from raison.models.protocol import Model

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
        speaker: Any = model  # it offers "own"
        weights = speaker.own(batch.encodings)
        if not hasattr(speaker, "selected"):
            return [Answer(each) for each in weights]
        kept = speaker.selected(batch.encodings)
        return [
            Answer(each, selected=np.array([some[units.of == unit].any() for unit in range(len(units))], bool))
            for each, some, units in zip(weights, kept, batch.units, strict=True)
        ]
