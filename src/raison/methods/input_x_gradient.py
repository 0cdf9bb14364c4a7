"""Gradient times word embedding."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from raison.methods.base import Answer, Batch, Method, method
from raison.methods.trace_answers import (
    GRADIENTS,
    answers_from_traces,
    require_traced,
    tensor_to_numpy,
)
from raison.models.protocol import Model, Trace

__all__ = ["InputXGradient", "gradient_times_embedding"]


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
        def answer(trace: Trace) -> Answer:
            return Answer(tensor_to_numpy(gradient_times_embedding(trace)))

        return answers_from_traces(model, batch, GRADIENTS, answer)


def gradient_times_embedding(trace: Trace) -> torch.Tensor:
    """[t]"""
    return (require_traced(trace.gradient) * require_traced(trace.embeddings)).sum(-1)
