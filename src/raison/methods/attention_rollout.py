"""Attention roll-out: attention of all layers, multiplied."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.methods.base import Answer, Batch, Method, method
from raison.methods.rollout import (
    map_on_axis,
    mean_map_of_heads,
    normalise_rows,
    roll_out,
    rows_of_answer,
)
from raison.methods.trace_answers import answers_from_traces
from raison.models.protocol import Model, Trace

__all__ = ["AttentionRollout"]


@method("attention_rollout")
@dataclass(frozen=True)
class AttentionRollout(Method):
    """Attention multiplied through the layers, half of each row staying with itself for the residual connection.

    Â_l = ½ mean_h A^l + ½ I, R = Â_L ··· Â_1, score = the rows of the answer (Abnar & Zuidema 2020; P0, P4). In an
    encoder-decoder every self- and cross-attention is one factor, on the axis of source and prefix together.
    """

    paper = "Abnar & Zuidema 2020"
    signed = False
    additive = True
    needs = frozenset({"attention"})
    watches = frozenset({"attention", "readout"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return answers_from_traces(model, batch, self.watches, rolled_out_attention)


def rolled_out_attention(trace: Trace) -> Answer:
    size = len(trace.encoding)
    residual = np.eye(size)
    blocks = (
        normalise_rows(map_on_axis(size, each, mean_map_of_heads(each.weights)) + residual)
        for each in trace.maps
    )
    return Answer(rows_of_answer(trace, roll_out(blocks, size)))
