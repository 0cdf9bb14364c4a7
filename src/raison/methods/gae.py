"""GAE, generic attention explainability: what attention passes on, weighted by what the answer makes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.methods.base import Answer, Batch, Method, method
from raison.methods.rollout import mean_map_of_heads, rows_of_answer
from raison.methods.trace_answers import answers_from_traces, require_traced
from raison.models.protocol import Map, Model, Trace

__all__ = ["GAE"]


@method("gae")
@dataclass(frozen=True)
class GAE(Method):
    """Chefer 2021a: attention ⊙ gradient, positive part, added up block by block, with cross-attention.

    R ← I; self-attention: R_qq += Ā R_qq, R_qk += Ā R_qk; cross-attention: R_qk += R̄_qqᵀ Ā R̄_kk, with
    Ā = mean_h (∇A ⊙ A)⁺; score = the rows of the answer in R − I (Chefer et al. 2021a, equations 5 to 11; their code
    sets the answer's own entry to zero instead, which is no use where the answer is read from all rows). P4 calls the
    method of Chefer 2021b "GAE": that one is `transformer_attribution`.
    """

    paper = "Chefer et al. 2021a"
    signed = False
    additive = True
    needs = frozenset({"attention"})
    watches = frozenset({"attention_gradients", "readout"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return answers_from_traces(model, batch, self.watches, relevance_of_answer)


def relevance_of_answer(trace: Trace) -> Answer:
    """R − I at the rows of the answer, where R is added up attention by attention."""
    identity = np.eye(len(trace.encoding))
    relevance = identity.copy()
    for each in trace.maps:
        weights = weighted_attention(each)
        if each.kind != "cross":
            relevance[each.rows] += weights @ relevance[each.cols]
            continue
        own_block = np.ix_(each.rows, each.rows)
        source_block = np.ix_(each.cols, each.cols)
        cross_block = np.ix_(each.rows, each.cols)
        own = gae_self_relevance(relevance[own_block])
        source = gae_self_relevance(relevance[source_block])
        relevance[cross_block] += own.T @ weights @ source
    return Answer(rows_of_answer(trace, relevance - identity))


def weighted_attention(each: Map) -> np.ndarray:
    """Ā = mean_h (∇A ⊙ A)⁺"""
    weighted = each.weights * require_traced(each.gradient)
    return mean_map_of_heads(weighted.clamp_min(0))


def gae_self_relevance(relevance: np.ndarray) -> np.ndarray:
    """R̄: what a self-relevance adds to the identity, rows normalised, on top of the identity."""
    identity = np.eye(len(relevance))
    more = relevance - identity
    total = more.sum(1, keepdims=True)
    shares = more / np.where(total > 0, total, 1.0)
    return np.where(total > 0, shares, 0.0) + identity
