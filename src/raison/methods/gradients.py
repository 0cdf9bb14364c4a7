"""Methods that read the gradient of the target's value at the word embeddings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from raison.methods.base import Answer, Batch, Method, method, read_traces
from raison.models.protocol import Model, Trace

__all__ = ["GradientNorm", "InputXGradient"]


GRADIENTS = frozenset({"gradients"})


def traced(model: Model, batch: Batch, score: Callable[[Trace], torch.Tensor]) -> list[Answer]:
    """One trace per example; `score(trace)` gives [t] scores."""
    return read_traces(model, batch, GRADIENTS, lambda trace: Answer(numpy(score(trace))))


def numpy(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()


@method("gradient_norm")
@dataclass(frozen=True)
class GradientNorm(Method):
    """Length of the gradient at each word embedding.

    score_i = ‖∂f/∂e_i‖₂, f = the target's value, e_i = word embedding (Simonyan et al. 2014; P0 section 5).
    """

    paper = "Simonyan et al. 2014"
    signed = False
    needs = watches = GRADIENTS

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return traced(model, batch, lambda trace: trace.gradient.norm(dim=-1))  # type: ignore[union-attr]


@method("input_x_gradient")
@dataclass(frozen=True)
class InputXGradient(Method):
    """Gradient times word embedding: the first-order change if the embedding went to zero.

    score_i = ⟨∂f/∂e_i, e_i⟩, signed (Shrikumar et al. 2017). e_i is the word embedding alone; P0's released
    code adds the position embedding, which the gradient does not belong to.
    """

    paper = "Shrikumar et al. 2017"
    additive = True
    needs = watches = GRADIENTS

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        def product(trace: Trace) -> torch.Tensor:
            return (trace.gradient * trace.embeddings).sum(-1)  # type: ignore[operator]

        return traced(model, batch, product)
