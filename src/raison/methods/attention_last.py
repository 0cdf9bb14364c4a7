"""Last attention: that of the last layer, at the rows of the answer."""

from __future__ import annotations

from dataclasses import dataclass

from raison.methods.base import Answer, Batch, Method, method
from raison.methods.rollout import last_maps, mean_map_of_heads, rows_of_answer, sum_of_maps
from raison.methods.trace_answers import answers_from_traces
from raison.models.protocol import Model, Trace

__all__ = ["AttentionLast"]


@method("attention_last")
@dataclass(frozen=True)
class AttentionLast(Method):
    """Attention of the last layer, from the rows that the answer is read from.

    score_j = Σ_i r_i · mean_h A^L_hij, r = the readout ([CLS], mean, last token, start and end, …). An encoder-decoder
    reads its source through cross-attention and its own words through the decoder's, as in P0's baselines.
    """

    paper = "P0 section 5; P4 RawAtt"
    signed = False
    additive = True
    needs = frozenset({"attention"})
    watches = frozenset({"attention", "readout"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return answers_from_traces(model, batch, self.watches, last_attention)


def last_attention(trace: Trace) -> Answer:
    maps = [(each, mean_map_of_heads(each.weights)) for each in last_maps(trace.maps)]
    total = sum_of_maps(len(trace.encoding), maps)
    return Answer(rows_of_answer(trace, total))
