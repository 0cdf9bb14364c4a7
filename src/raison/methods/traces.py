"""Reading what a model shows of one forward and backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch

from raison.methods.base import Answer, Batch
from raison.models.protocol import Model, Trace
from raison.models.relevance.mode import Rules

__all__ = ["GRADIENTS", "read_traces", "require", "to_numpy"]

T = TypeVar("T")

GRADIENTS = frozenset({"gradients"})


def read_traces(
    model: Model,
    batch: Batch,
    want: frozenset[str],
    answer_of: Callable[[Trace], Answer],
    *,
    rules: Rules | None = None,
    embeddings: Sequence[torch.Tensor] | None = None,
) -> list[Answer]:
    """One answer per example, made from its trace."""
    answers: dict[int, Answer] = {}
    traces = model.trace(
        batch.encodings, batch.targets, want=want, embeddings=embeddings, rules=rules
    )
    for index, trace in traces:
        answers[index] = answer_of(trace)
    return [answers[index] for index in range(len(batch))]


def require(value: T | None) -> T:
    """Something that a trace was asked for; a model whose trace lacks it is not written right."""
    if value is None:
        raise TypeError("the trace lacks something that was asked for by `want`")
    return value


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """The numbers of a tensor in double precision."""
    return tensor.detach().cpu().double().numpy()
