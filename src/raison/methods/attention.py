"""Methods that read attention weights at the rows from which the answer is taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.methods.base import Answer, Batch, Method, method, read_traces
from raison.models.base import Model, Trace

__all__ = ["AttentionLast", "AttentionMean"]


def read_rows(trace: Trace, layers: str) -> np.ndarray:
    """[t] attention from the readout rows, mean over heads, of the last layer or of all.

    An encoder-decoder reads its source through cross-attention and its own words through the decoder's:
    both land on the one axis, as in P0's baselines for translation.
    """
    scores = np.zeros(len(trace.encoding))
    kinds = {m.kind for m in trace.maps} - {"encoder"}
    for kind in kinds:
        maps = [m for m in trace.maps if m.kind == kind]
        maps = maps[-1:] if layers == "last" else maps
        for m in maps:
            rows = trace.readout[m.rows]  # type: ignore[index]
            seen = m.weights.mean(0).double().cpu().numpy()  # [s t]
            scores[m.cols] += rows @ seen / len(maps)
    return scores


def attended(model: Model, batch: Batch, layers: str) -> list[Answer]:
    want = frozenset({"attention", "readout"})
    return read_traces(model, batch, want, lambda trace: Answer(read_rows(trace, layers)))


@method("attention_last")
@dataclass(frozen=True)
class AttentionLast(Method):
    """Attention of the last layer, from the rows that the answer is read from.

    score_j = Σ_i r_i · mean_h A^L_hij, r = the readout ([CLS], mean, last token, start and end, …).
    """

    paper = "P0 section 5; P4 RawAtt"
    signed = False
    additive = True
    needs = frozenset({"attention"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return attended(model, batch, "last")


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

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return attended(model, batch, "all")
