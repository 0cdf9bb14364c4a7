"""AttCAT: attention that a token receives, times its impact on the answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.methods.base import Answer, Batch, Method, method
from raison.methods.trace_answers import answers_from_traces, tensor_to_numpy
from raison.models.protocol import Model, Trace

__all__ = ["AttCAT"]


@method("attcat")
@dataclass(frozen=True)
class AttCAT(Method):
    """Attention that a token receives times its share in the answer, summed over blocks, signed.

    score_j = Σ_l mean_{h,i} A^l_hij · ⟨∂f/∂x^l_j, x^l_j⟩, x^l = input of block l (Qiang et al. 2022). The
    cross-attention of an encoder-decoder looks at the encoder's last output, so that stands for x there.
    """

    paper = "Qiang et al. 2022"
    additive = True
    needs = frozenset({"attention", "hidden"})
    watches = frozenset({"attention", "hidden_gradients"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return answers_from_traces(model, batch, self.watches, attention_times_impact)


def attention_times_impact(trace: Trace) -> Answer:
    impacts = []
    for state, gradient in zip(trace.hidden, trace.hidden_gradient, strict=True):
        share = (state * gradient).sum(-1)
        impacts.append(tensor_to_numpy(share))

    scores = np.zeros(len(trace.encoding))
    for each in trace.maps:
        layer = each.layer
        if each.kind == "cross":
            layer = len(impacts) - 1
        received = tensor_to_numpy(each.weights.mean((0, 1)))
        scores[each.cols] += received * impacts[layer][each.cols]
    return Answer(scores)
