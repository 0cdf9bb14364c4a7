"""The same model with some attention heads switched off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.records import Encoding, Target
from raison.models.protocol import Model, Question, Scored, Trace
from raison.models.relevance.mode import Rules
from raison.models.runner.score_cache import Memory

__all__ = ["Muted"]


class Muted:
    """A model whose answers and traces are those without some heads; everything else is the model's own."""

    def __init__(self, model: Model, off: Sequence[tuple[int, int]], maps: int, heads: int):
        mask = np.ones((maps, heads))
        for row, head in off:
            if not (0 <= row < maps and 0 <= head < heads):
                raise InputError(
                    f"There is no head {head} in layer {row}: {model.name} has {maps} by {heads} of them."
                )
            mask[row, head] = 0.0
        self._model, self._mask = model, mask

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def score(
        self,
        questions: Sequence[Question],
        *,
        removal: str | None = None,
        heads: np.ndarray | None = None,
        memory: Memory | None = None,
    ) -> list[Scored]:
        """The model's answers without the heads; a memory is of the whole model's answers, so none is used."""
        return self._model.score(questions, removal=removal, heads=self._mask)

    def trace(
        self,
        encodings: Sequence[Encoding],
        targets: Sequence[Target],
        *,
        want: frozenset[str],
        embeddings: Sequence[torch.Tensor] | None = None,
        heads: np.ndarray | None = None,
        rules: Rules | None = None,
    ) -> Iterator[tuple[int, Trace]]:
        """The model's traces without the heads."""
        return self._model.trace(
            encodings, targets, want=want, embeddings=embeddings, heads=self._mask, rules=rules
        )
