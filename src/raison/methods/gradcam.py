"""GradCAM, carried over from images to attention: the activation map of its heads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.methods.base import Answer, Batch, Method, method
from raison.methods.rollout import last_maps
from raison.methods.trace_answers import answers_from_traces, require_traced, tensor_to_numpy
from raison.models.protocol import Map, Model, Trace

__all__ = ["GradCAM"]


@method("gradcam")
@dataclass(frozen=True)
class GradCAM(Method):
    """Heads of the last block weighted by their mean gradient, positive part, at the rows of the answer.

    w_h = mean_{ij} ∂f/∂A^L_hij, M = (mean_h w_h A^L_h)⁺, scaled to 0…1 over the whole map; score = the rows of the
    answer (Selvaraju et al. 2017, as P4 compares it).
    """

    paper = "P4, from Selvaraju et al. 2017"
    signed = False
    needs = frozenset({"attention"})
    watches = frozenset({"attention_gradients", "readout"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return answers_from_traces(model, batch, self.watches, activation_map_of_last_attention)


def activation_map_of_last_attention(trace: Trace) -> Answer:
    readout = require_traced(trace.readout)
    scores = np.zeros(len(trace.encoding))
    for last in last_maps(trace.maps):
        scores[last.cols] += readout[last.rows] @ activation_map(last)
    return Answer(scores)


def activation_map(last: Map) -> np.ndarray:
    """[s c] the heads weighted by their mean gradient, positive part, from 0 to 1."""
    weight_of_head = require_traced(last.gradient).mean((1, 2), keepdim=True)
    weighted = tensor_to_numpy((weight_of_head * last.weights).mean(0).clamp_min(0))
    low = weighted.min()
    high = weighted.max()
    if high > low:
        return np.asarray((weighted - low) / (high - low))
    return weighted
