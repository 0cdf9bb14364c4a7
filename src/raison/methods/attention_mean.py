"""Mean attention: of all layers and heads, averaged."""

from __future__ import annotations

from dataclasses import dataclass

from raison.methods.base import Answer, Batch, Method, method
from raison.methods.rollout import (
    maps_of_answer,
    mean_map_of_heads,
    mean_of_maps_by_kind,
    rows_of_answer,
)
from raison.methods.trace_answers import answers_from_traces
from raison.models.protocol import Model, Trace

__all__ = ["AttentionMean"]


@method("attention_mean")
@dataclass(frozen=True)
class AttentionMean(Method):
    """Attention averaged over all layers and heads, from the rows that the answer is read from.

    score_j = Σ_i r_i · mean_{l,h} A^l_hij (P0's "all attentions").
    """

    paper = "P0 section 5"
    signed = False
    additive = True
    needs = frozenset({"attention"})
    watches = frozenset({"attention", "readout"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return answers_from_traces(model, batch, self.watches, mean_attention)


def mean_attention(trace: Trace) -> Answer:
    maps = [(each, mean_map_of_heads(each.weights)) for each in maps_of_answer(trace.maps)]
    total = mean_of_maps_by_kind(len(trace.encoding), maps)
    return Answer(rows_of_answer(trace, total))
