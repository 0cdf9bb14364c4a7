"""The `Model` of transformers models: a runner, which runs it, and a task, which knows what its outcomes mean."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from raison.core.errors import InputError, Unsupported
from raison.core.records import Encoding, Example, Target
from raison.models.attention.value_zeroing import value_zeroing_traces
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
from raison.models.relevance.passes import relevance_traces, rescale_traces
from raison.models.runner.runner import Runner
from raison.models.runner.score import score
from raison.models.runner.score_cache import Memory
from raison.models.runner.trace import record_traces
from raison.models.tasks.base import Task
from raison.models.tasks.generation import GenerationTask

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from raison.models.relevance.mode import Rules

__all__ = ["TransformersModel", "TransformersWriter", "transformers_model"]


class TransformersModel:
    """A transformers model of one task, seen through a view."""

    def __init__(self, runner: Runner, definition: Task):
        self.runner = runner
        self.definition = definition  # of its task
        self.offers: frozenset[str] = frozenset({"score"})
        # a file of head statistics that comes with the model (offer "heads")
        self.head_statistics: str | None = None

    # -- what it is -------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.runner.loaded.name

    @name.setter
    def name(self, name: str) -> None:
        self.runner.loaded.name = name

    @property
    def task(self) -> str:
        return self.definition.name

    @property
    def removals(self) -> tuple[str, ...]:
        return self.runner.removals

    @property
    def labels(self) -> tuple[str, ...]:
        return self.definition.labels

    @property
    def generates(self) -> bool:
        return self.definition.generates

    @property
    def probable(self) -> bool:
        return self.definition.probable

    @property
    def problem(self) -> str:
        return self.definition.problem

    @property
    def shares_prefixes(self) -> bool:
        return self.runner.shares_prefixes

    @property
    def rounding(self) -> float:
        return self.runner.loaded.rounding

    @property
    def max_tokens(self) -> int | None:
        return self.runner.loaded.max_tokens

    # -- what is inside ---------------------------------------------------------------------------------

    @property
    def hf(self) -> PreTrainedModel:
        """The user's model: read, never changed."""
        return self.runner.loaded.hf

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The user's tokenizer: never called, see `codec`."""
        return self.runner.loaded.tokenizer

    @property
    def codec(self) -> Codec:
        """Text to tokens and back."""
        return self.runner.loaded.codec

    @property
    def device(self) -> torch.device:
        return self.runner.loaded.device

    @property
    def tables(self) -> list[nn.Embedding]:
        """The word table of each stream, as a module."""
        return self.runner.word_tables

    @property
    def budget(self) -> Budget:
        """How much one batch may hold."""
        return self.runner.budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        self.runner = self.runner.with_budget(budget)

    # -- questions --------------------------------------------------------------------------------------

    def encode(self, examples: Sequence[Example], *, truncate: bool = False) -> list[Encoding]:
        encodings = [self.definition.encode(example, truncate=truncate) for example in examples]
        if not all(encoding.ids.size for encoding in encodings):
            raise InputError("The tokenizer makes no tokens of this text: give some words.")
        return encodings

    def resolve_targets(
        self, encoding: Encoding, target_spec: TargetSpec = PREDICTED
    ) -> list[tuple[Encoding, Target]]:
        return self.definition.resolve_targets(self.runner, encoding, target_spec)

    def predict(self, encodings: Sequence[Encoding]) -> list[Prediction]:
        return self.definition.predict(self.runner, encodings)

    def score(
        self,
        questions: Sequence[Question],
        *,
        removal: str | None = None,
        heads: np.ndarray | None = None,
        memory: Memory | None = None,
    ) -> list[Scored]:
        return score(self.runner, questions, removal=removal, heads=heads, memory=memory)

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
        runner = self.runner
        paired = rules is not None and rules.paired
        runner.check_heads(heads)
        if heads is not None and ("zeroed" in want or paired):
            raise Unsupported(
                "This method can't be asked about a model without some heads: choose another."
            )
        if paired and runner.budget.rows is not None:
            raise Unsupported(
                f"{self.name} answers otherwise in a batch, and this method needs one: choose another."
            )

        if "zeroed" in want:
            traces = value_zeroing_traces(runner, encodings, targets)
        elif rules is None:
            traces = record_traces(
                runner, encodings, targets, want, embeddings=embeddings, heads=heads
            )
        elif rules.paired:
            traces = rescale_traces(runner, encodings, targets, rules, pairs=embeddings or ())
        else:
            traces = relevance_traces(
                runner, encodings, targets, want, rules, embeddings=embeddings, heads=heads
            )
        return differentiable(traces)

    # -- others like this one ---------------------------------------------------------------------------

    def with_budget(self, budget: Budget) -> TransformersModel:
        """The same model in other batches; the view and the user's model are shared."""
        other = copy.copy(self)
        other.runner = self.runner.with_budget(budget)
        return other

    def with_weights(self, hf: PreTrainedModel) -> TransformersModel:
        """The same for another model of the same architecture and tokens."""
        other = copy.copy(self)
        loaded = self.runner.loaded.with_weights(hf)
        other.definition = self.definition.with_model(loaded)
        other.runner = self.runner.with_model(loaded, other.definition)
        return other


class TransformersWriter(TransformersModel):
    """A transformers model that writes text."""

    definition: GenerationTask

    def write(self, encoding: Encoding, longest: int | None = None) -> list[int]:
        return self.definition.write(self.runner, encoding, longest)

    def ids_of(self, wanted: object, encoding: Encoding, position: int) -> list[int]:
        return self.definition.ids_of(wanted, encoding, position)

    def pieces_of(self, encoding: Encoding, position: int, text: str) -> list[int]:
        return self.definition.pieces_of(encoding, position, text)

    def text_of(self, ids: Sequence[int]) -> str:
        return self.definition.text_of(ids)

    def first_position(self, encoding: Encoding) -> int:
        return self.definition.first_position(encoding)

    def next_target(self, encoding: Encoding, token: int, position: int | None = None) -> Target:
        return self.definition.next_target(encoding, token, position)


def transformers_model(definition: Task) -> TransformersModel:
    """The model of a task; what it offers is still to be found out (`probe`)."""
    runner = Runner(definition.loaded, definition)
    if definition.generates:
        return TransformersWriter(runner, definition)
    return TransformersModel(runner, definition)


@torch.inference_mode(False)
@torch.enable_grad()
def differentiable(traces: Iterator[tuple[int, Trace]]) -> Iterator[tuple[int, Trace]]:
    """The traces, made with gradients even where the caller has switched them off for itself."""
    yield from traces
