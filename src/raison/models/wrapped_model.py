"""A model that answers as another one does, but for what a subclass defines: for models that explain themselves."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from raison.core.records import Encoding, Example, Target
from raison.models.codec import Codec
from raison.models.protocol import (
    PREDICTED,
    Budget,
    Prediction,
    Question,
    Scored,
    TargetSpec,
    Trace,
)
from raison.models.runner.runner import Runner
from raison.models.runner.score_cache import Memory
from raison.models.transformers_model import TransformersModel

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from typing_extensions import Self

    from raison.models.relevance.mode import Rules

__all__ = ["WrappedModel"]


class WrappedModel:
    """Asks an inner model; define what is otherwise (`own`, `encode`), and add what more it `offers`."""

    def __init__(self, inner: TransformersModel):
        self.inner = inner
        self.offers = inner.offers
        self.head_statistics = inner.head_statistics

    # -- what it is -------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.inner.name

    @name.setter
    def name(self, name: str) -> None:
        self.inner.name = name

    @property
    def task(self) -> str:
        return self.inner.task

    @property
    def removals(self) -> tuple[str, ...]:
        return self.inner.removals

    @property
    def labels(self) -> tuple[str, ...]:
        return self.inner.labels

    @property
    def generates(self) -> bool:
        return self.inner.generates

    @property
    def probable(self) -> bool:
        return self.inner.probable

    @property
    def problem(self) -> str:
        return self.inner.problem

    @property
    def shares_prefixes(self) -> bool:
        return self.inner.shares_prefixes

    @property
    def rounding(self) -> float:
        return self.inner.rounding

    @property
    def max_tokens(self) -> int | None:
        return self.inner.max_tokens

    # -- what is inside ---------------------------------------------------------------------------------

    @property
    def runner(self) -> Runner:
        return self.inner.runner

    @property
    def hf(self) -> PreTrainedModel:
        return self.inner.hf

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        return self.inner.tokenizer

    @property
    def codec(self) -> Codec:
        return self.inner.codec

    @property
    def device(self) -> torch.device:
        return self.inner.device

    @property
    def tables(self) -> list[nn.Embedding]:
        """The word table of each stream, as a module."""
        return self.inner.tables

    @property
    def budget(self) -> Budget:
        return self.inner.budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        self.inner = self.inner.with_budget(budget)

    # -- questions --------------------------------------------------------------------------------------

    def encode(self, examples: Sequence[Example], *, truncate: bool = False) -> list[Encoding]:
        return self.inner.encode(examples, truncate=truncate)

    def resolve_targets(
        self, encoding: Encoding, target_spec: TargetSpec = PREDICTED
    ) -> list[tuple[Encoding, Target]]:
        return self.inner.resolve_targets(encoding, target_spec)

    def predict(self, encodings: Sequence[Encoding]) -> list[Prediction]:
        return self.inner.predict(encodings)

    def score(
        self,
        questions: Sequence[Question],
        *,
        removal: str | None = None,
        heads: np.ndarray | None = None,
        memory: Memory | None = None,
    ) -> list[Scored]:
        return self.inner.score(questions, removal=removal, heads=heads, memory=memory)

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
        return self.inner.trace(
            encodings, targets, want=want, embeddings=embeddings, heads=heads, rules=rules
        )

    # -- others like this one ---------------------------------------------------------------------------

    def with_budget(self, budget: Budget) -> Self:
        """The same model in other batches; the view and the user's model are shared."""
        return self.around(self.inner.with_budget(budget))

    def with_weights(self, hf: PreTrainedModel) -> Self:
        """The same for another model of the same architecture and tokens."""
        return self.around(self.inner.with_weights(hf))

    def around(self, inner: TransformersModel) -> Self:
        """The same around another model."""
        other = copy.copy(self)
        other.inner = inner
        return other
