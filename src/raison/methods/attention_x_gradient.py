"""Attention times the gradient of the answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.methods.base import Answer, Batch, Method, method
from raison.methods.trace_answers import answers_from_traces, require_traced, tensor_to_numpy
from raison.models.protocol import Model, Trace

__all__ = ["AttentionXGradient"]


@method("attention_x_gradient")
@dataclass(frozen=True)
class AttentionXGradient(Method):
    """Attention times the gradient of the answer: the first-order change if nobody looked at a token.

    score_j = Σ_{l,h,i} A^l_hij · ∂f/∂A^l_hij, over all rows, signed (Serrano & Smith 2019; Barkan et al. 2021 take its
    positive part).
    """

    paper = "Serrano & Smith 2019"
    additive = True
    needs = frozenset({"attention"})
    watches = frozenset({"attention_gradients"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return answers_from_traces(model, batch, self.watches, attention_times_gradient)


def attention_times_gradient(trace: Trace) -> Answer:
    scores = np.zeros(len(trace.encoding))
    for each in trace.maps:
        change = each.weights * require_traced(each.gradient)
        scores[each.cols] += tensor_to_numpy(change.sum((0, 1)))
    return Answer(scores)
