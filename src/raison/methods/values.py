"""What attention carries, not only where it looks: value-weighted attention, value zeroing, ALTI."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from raison.core import progress
from raison.core.spec import one_of
from raison.methods.base import Answer, Batch, Method, method, read_traces
from raison.methods.gradients import numpy
from raison.methods.rollout import at_answer, last_of_each, lifted, normalised, rolled_out
from raison.models.protocol import Map, Model, Trace

__all__ = ["ALTI", "ValueWeightedAttention", "ValueZeroing"]

ROWS = 64  # rows of a block taken apart at a time: [rows t d] numbers


@method("value_weighted_attention")
@dataclass(frozen=True)
class ValueWeightedAttention(Method):
    """Attention times the length of what it carries: weights of vectors that hardly count, count little.

    N^l_ij = Σ_h ‖A^l_hij · v_hj W_O‖₂ (Kobayashi et al. 2020), of the last layer, of the mean of all layers, or rolled
    out as attention is (½ rows normalised + ½ I).
    """

    paper = "Kobayashi et al. 2020"
    signed = False
    additive = True
    needs = frozenset({"attention"})
    watches = frozenset({"writes", "readout"})

    layers: str = "rollout"  # last | mean | rollout

    def __post_init__(self) -> None:
        one_of("layers", self.layers, ("last", "mean", "rollout"))

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        def answer(trace: Trace) -> Answer:
            size = len(trace.encoding)
            norms = [numpy((w.weights * w.values.norm(dim=-1)[:, None]).sum(0)) for w in trace.writes]
            if self.layers == "rollout":
                steps = (
                    (normalised(lifted(size, m, n)) + np.eye(size)) / 2 for m, n in zip(trace.maps, norms, strict=True)
                )
                return Answer(at_answer(trace, rolled_out(steps, size)))
            last = [id(m) for m in last_of_each(trace.maps)]
            total = np.zeros((size, size))
            for each, norm in zip(trace.maps, norms, strict=True):
                layers = sum(m.kind == each.kind for m in trace.maps)
                if self.layers == "mean" and each.kind != "encoder":
                    total += lifted(size, each, norm) / layers
                elif self.layers == "last" and id(each) in last:
                    total += lifted(size, each, norm)
            return Answer(at_answer(trace, total))

        return read_traces(model, batch, self.watches, answer)


@method("value_zeroing")
@dataclass(frozen=True)
class ValueZeroing(Method):
    """How far a token's state moves in a block when the value of another token is zero, rolled out.

    C^l_ij = cosine distance of block l's output y_i with and without the value vector of token j, the attention weights
    kept; rows normalised, blocks multiplied (Mohebbi et al. 2023). A decoder's block has one row for its own words and
    the source together. Costs one forward pass per token.
    """

    paper = "Mohebbi et al. 2023"
    signed = False
    additive = True
    needs = frozenset({"attention"})

    layers: str = "rollout"  # last | rollout

    def __post_init__(self) -> None:
        one_of("layers", self.layers, ("last", "rollout"))

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        def answer(trace: Trace) -> Answer:
            size = len(trace.encoding)
            steps = [stepped(size, each) for each in trace.zeroed]
            return Answer(at_answer(trace, rolled_out(steps, size) if self.layers == "rollout" else steps[-1]))

        return read_traces(model, batch, frozenset({"zeroed", "readout"}), answer)


def stepped(size: int, each: Map) -> np.ndarray:
    """The matrix of one block; rows that are not its own stay with themselves."""
    matrix = normalised(lifted(size, each, numpy(each.weights[0])))
    others = np.setdiff1d(np.arange(size), each.rows)
    matrix[others] = np.eye(size)[others]
    return matrix


@method("alti")
@dataclass(frozen=True)
class ALTI(Method):
    """How much of each attention block's output comes from each token, rolled out (P4's Table 4 calls it ALTC).

    y_i = Σ_j T_i(x_j) + biases, T through values and output projection, the residual with j = i, norms linearised at
    their actual deviation; c_ij ∝ max(0, ‖y_i‖₁ − ‖y_i − T_i(x_j)‖₁), rows normalised, blocks multiplied (Ferrando et
    al. 2022; cross-attention as in ALTI+). The bias of the values belongs to the values.
    """

    paper = "Ferrando et al. 2022; P4 App. B"
    signed = False
    additive = True
    needs = frozenset({"attention"})
    watches = frozenset({"writes", "readout"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        def answer(trace: Trace) -> Answer:
            size = len(trace.encoding)
            return Answer(at_answer(trace, rolled_out(contributions(trace, size), size)))

        return read_traces(model, batch, self.watches, answer)


def contributions(trace: Trace, size: int) -> Iterator[np.ndarray]:
    """[t t] of each attention: shares of its rows' outputs."""
    for each, write in zip(trace.maps, trace.writes, strict=True):
        matrix = np.zeros((size, size))
        for start in range(0, len(each.rows), ROWS):
            progress.check()
            rows = slice(start, start + ROWS)
            if write.output is None:
                raise AssertionError("a write that is not complete is never handed out")
            output, own = write.output[rows], write.own(rows)
            parts = write.parts(rows)  # [s c d]
            matched = torch.from_numpy(each.rows[rows, None] == each.cols[None])  # where a row looks at itself
            parts = parts + own[:, None] * matched[..., None].to(own)
            matrix[np.ix_(each.rows[rows], each.cols)] = numpy(closer(output, parts))
            outside = ~matched.any(1).numpy()  # a decoder's row among source columns: the rest is a column of its own
            if outside.any():
                self_part = numpy(closer(output, own[:, None]))[:, 0]
                matrix[each.rows[rows][outside], each.rows[rows][outside]] = self_part[outside]
        yield normalised(matrix)


def closer(output: torch.Tensor, parts: torch.Tensor) -> torch.Tensor:
    """[s c] how much nearer to zero the output [s d] gets when a part [s c d] is taken away, at least 0."""
    whole = output.abs().sum(-1, keepdim=True)
    return (whole - (output[:, None] - parts).abs().sum(-1)).clamp_min(0)
