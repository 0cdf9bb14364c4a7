"""Class activation maps, carried over from images to attention: CAM, GradCAM, AttCAT."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.methods.base import Answer, Batch, Method, method, read_traces
from raison.methods.gradients import numpy
from raison.methods.rollout import last_of_each
from raison.models.protocol import Model, Trace

__all__ = ["CAM", "AttCAT", "GradCAM"]


@method("cam")
@dataclass(frozen=True)
class CAM(Method):
    """Gradient of the last block's attention, mean over heads and rows, positive part.

    score_j = (mean_{h,i} ∂f/∂A^L_hij)⁺ (as P4 compares it).
    """

    paper = "P4, from Zhou et al. 2016"
    signed = False
    needs = frozenset({"attention"})
    watches = frozenset({"attention_gradients"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        def answer(trace: Trace) -> Answer:
            scores = np.zeros(len(trace.encoding))
            for last in last_of_each(trace.maps):
                scores[last.cols] += numpy(last.gradient.mean((0, 1)).clamp_min(0))  # type: ignore[union-attr]
            return Answer(scores)

        return read_traces(model, batch, self.watches, answer)


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
        def answer(trace: Trace) -> Answer:
            scores = np.zeros(len(trace.encoding))
            for last in last_of_each(trace.maps):
                weight = last.gradient.mean((1, 2), keepdim=True)  # type: ignore[union-attr]
                found = numpy((weight * last.weights).mean(0).clamp_min(0))
                low, high = found.min(), found.max()
                if high > low:
                    found = (found - low) / (high - low)
                scores[last.cols] += trace.readout[last.rows] @ found  # type: ignore[index]
            return Answer(scores)

        return read_traces(model, batch, self.watches, answer)


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
        def answer(trace: Trace) -> Answer:
            impact = [
                numpy((state * slope).sum(-1)) for state, slope in zip(trace.hidden, trace.hidden_gradient, strict=True)
            ]
            scores = np.zeros(len(trace.encoding))
            for each in trace.maps:
                layer = len(impact) - 1 if each.kind == "cross" else each.layer
                scores[each.cols] += numpy(each.weights.mean((0, 1))) * impact[layer][each.cols]
            return Answer(scores)

        return read_traces(model, batch, self.watches, answer)
