"""Generic attention explainability: what attention passes on, weighted by what the answer makes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.methods.base import Answer, Batch, Method, method, read_traces
from raison.methods.rollout import at_answer, heads_mean
from raison.models.protocol import Map, Model, Trace

__all__ = ["GAE"]


def weighted(each: Map) -> np.ndarray:
    """Ā = mean_h (∇A ⊙ A)⁺"""
    return heads_mean(each, lambda m: (m.weights * m.gradient).clamp_min(0))  # type: ignore[operator]


def without_self(relevance: np.ndarray) -> np.ndarray:
    """R̄: what a self-relevance adds to the identity, rows normalised, on top of the identity."""
    more = relevance - np.eye(len(relevance))
    total = more.sum(1, keepdims=True)
    return np.where(total > 0, more / np.where(total > 0, total, 1.0), 0.0) + np.eye(len(relevance))


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
        def answer(trace: Trace) -> Answer:
            relevance = np.eye(len(trace.encoding))
            for each in trace.maps:
                seen = weighted(each)
                if each.kind == "cross":
                    own, source = (without_self(relevance[np.ix_(r, r)]) for r in (each.rows, each.cols))
                    relevance[np.ix_(each.rows, each.cols)] += own.T @ seen @ source
                else:
                    relevance[each.rows] += seen @ relevance[each.cols]
            return Answer(at_answer(trace, relevance - np.eye(len(relevance))))

        return read_traces(model, batch, self.watches, answer)
