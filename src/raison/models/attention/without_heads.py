"""The same model with some attention heads switched off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from raison.core.errors import InputError
from raison.models.protocol import Model

__all__ = ["Muted"]


class Muted:
    """A model whose answers and traces are those without some heads; everything else is the model's own."""

    def __init__(self, model: Model, off: Sequence[tuple[int, int]], maps: int, heads: int):
        mask = np.ones((maps, heads))
        for row, head in off:
            if not (0 <= row < maps and 0 <= head < heads):
                raise InputError(f"There is no head {head} in layer {row}: {model.name} has {maps} by {heads} of them.")
            mask[row, head] = 0.0
        self._model, self._mask = model, mask

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def score(self, questions: Any, **how: Any) -> Any:
        return self._model.score(questions, **{**how, "heads": self._mask, "memory": None})

    def trace(self, encodings: Any, targets: Any, **how: Any) -> Any:
        return self._model.trace(encodings, targets, **{**how, "heads": self._mask})
