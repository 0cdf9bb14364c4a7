"""Methods that read attention weights, and how the answer depends on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.methods.base import Answer, Batch, Method, method, read_traces
from raison.methods.gradients import numpy
from raison.methods.rollout import at_answer, heads_mean, last_of_each, lifted, normalised, rolled_out
from raison.models.protocol import Map, Model, Trace

__all__ = ["AttentionLast", "AttentionMean", "AttentionRollout", "AttentionXGradient"]

SEEN = frozenset({"attention", "readout"})


def weights_of(each: Map) -> np.ndarray:
    return heads_mean(each, lambda m: m.weights)


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
    watches = SEEN

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        def answer(trace: Trace) -> Answer:
            size = len(trace.encoding)
            return Answer(at_answer(trace, sum(lifted(size, m, weights_of(m)) for m in last_of_each(trace.maps))))  # type: ignore[arg-type]

        return read_traces(model, batch, self.watches, answer)


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
    watches = SEEN

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        def answer(trace: Trace) -> Answer:
            size = len(trace.encoding)
            total = np.zeros((size, size))
            for each in trace.maps:
                layers = sum(m.kind == each.kind for m in trace.maps)
                if each.kind != "encoder":
                    total += lifted(size, each, weights_of(each)) / layers
            return Answer(at_answer(trace, total))

        return read_traces(model, batch, self.watches, answer)


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
    watches = SEEN

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        def answer(trace: Trace) -> Answer:
            size = len(trace.encoding)
            steps = (normalised(lifted(size, m, weights_of(m)) + np.eye(size)) for m in trace.maps)
            return Answer(at_answer(trace, rolled_out(steps, size)))

        return read_traces(model, batch, self.watches, answer)


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
        def answer(trace: Trace) -> Answer:
            scores = np.zeros(len(trace.encoding))
            for each in trace.maps:
                scores[each.cols] += numpy((each.weights * each.gradient).sum((0, 1)))  # type: ignore[operator]
            return Answer(scores)

        return read_traces(model, batch, self.watches, answer)
