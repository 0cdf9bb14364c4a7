"""Partial LRP: relevance of the last block's attention weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.methods.base import Answer, Batch, Method, method
from raison.methods.lrp import ALPHA_BETA
from raison.methods.rollout import last_maps, mean_map_of_heads
from raison.methods.trace_answers import answer_with_conservation, require_traced
from raison.models.protocol import Model

__all__ = ["PartialLRP"]


@method("partial_lrp")
@dataclass(frozen=True)
class PartialLRP(Method):
    """Relevance of the last block's attention weights, positive part, mean over heads, at the rows of the answer.

    score_j = Σ_i r_i · mean_h (R^L_hij)⁺ (Voita et al. 2019, as P4 compares it). An encoder-decoder's source is read
    from its last cross-attention, its own words from the decoder's last self-attention.
    """

    paper = "Voita et al. 2019; P4"
    signed = False
    additive = True
    needs = frozenset({"gradients", "attention"})
    watches = frozenset({"readout"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        # where the answer is read is a matter of gradients, which the rules would bend
        plain = dict(model.trace(batch.encodings, batch.targets, want=self.watches))
        want = frozenset({"relevance", "attention"})
        answers: dict[int, Answer] = {}
        for index, trace in model.trace(
            batch.encodings, batch.targets, want=want, rules=ALPHA_BETA
        ):
            readout = require_traced(plain[index].readout)
            scores = np.zeros(len(trace.encoding))
            for last in last_maps(trace.maps):
                relevance = mean_map_of_heads(require_traced(last.relevance).clamp_min(0))
                scores[last.cols] += readout[last.rows] @ relevance
            answers[index] = answer_with_conservation(scores, trace)
        return [answers[index] for index in range(len(batch))]
