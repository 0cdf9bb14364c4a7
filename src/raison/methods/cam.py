"""CAM: class activation maps, carried over from images to attention."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.methods.base import Answer, Batch, Method, method
from raison.methods.rollout import last_maps
from raison.methods.trace_answers import answers_from_traces, require_traced, tensor_to_numpy
from raison.models.protocol import Model, Trace

__all__ = ["CAM"]


@method("cam")
@dataclass(frozen=True)
class CAM(Method):
    """Gradient of the last block's attention, mean over heads and rows, positive part.

    score_j = (mean_{h,i} ∂f/∂A^L_hij)⁺ (as P4 compares it).
    """

    paper = "P4, from Zhou et al. 2016"
    signed = False
    needs = frozenset({"attention"})
    watches = frozenset({"attention_gradients"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return answers_from_traces(model, batch, self.watches, mean_gradient_of_last_attention)


def mean_gradient_of_last_attention(trace: Trace) -> Answer:
    scores = np.zeros(len(trace.encoding))
    for last in last_maps(trace.maps):
        mean = require_traced(last.gradient).mean((0, 1))
        scores[last.cols] += tensor_to_numpy(mean.clamp_min(0))
    return Answer(scores)
