"""Length of the gradient at each word embedding."""

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

__all__ = ["GradientNorm", "norm_of_gradient"]


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
        def answer(trace: Trace) -> Answer:
            return Answer(tensor_to_numpy(norm_of_gradient(trace)))

        return answers_from_traces(model, batch, GRADIENTS, answer)


def norm_of_gradient(trace: Trace) -> torch.Tensor:
    """[t]"""
    norm: torch.Tensor = require_traced(trace.gradient).norm(dim=-1)
    return norm
