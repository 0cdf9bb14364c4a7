"""ALTI: the contribution of each token to what attention writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from raison.core import progress
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.rollout import normalise_rows, roll_out, rows_of_answer
from raison.methods.trace_answers import answers_from_traces, require_traced, tensor_to_numpy
from raison.models.attention.residual_writes import Write
from raison.models.protocol import Map, Model, Trace

__all__ = ["ALTI"]

ROWS = 64  # rows of a block taken apart at a time: [rows t d] numbers


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
            contributions = roll_out(contributions_of_blocks(trace), len(trace.encoding))
            return Answer(rows_of_answer(trace, contributions))

        return answers_from_traces(model, batch, self.watches, answer)


def contributions_of_blocks(trace: Trace) -> Iterator[np.ndarray]:
    """[t t] of each attention: shares of its rows' outputs."""
    size = len(trace.encoding)
    for each, write in zip(trace.maps, trace.writes, strict=True):
        matrix = np.zeros((size, size))
        for start in range(0, len(each.rows), ROWS):
            progress.check()
            add_contributions(matrix, each, write, slice(start, start + ROWS))
        yield normalise_rows(matrix)


def add_contributions(matrix: np.ndarray, each: Map, write: Write, rows: slice) -> None:
    """Fill some rows of one attention's matrix [t t]."""
    positions = each.rows[rows]
    output = require_traced(write.output)[rows]
    residual = write.own(rows)
    parts = write.parts(rows)  # [s c d]

    # where a row looks at itself, the residual connection is a part of what it gets from there
    same_position = positions[:, None] == each.cols[None]
    matched = torch.from_numpy(same_position)
    own_part = residual[:, None] * matched[..., None].to(residual)
    contributions = contribution_of_parts(output, parts + own_part)
    matrix[np.ix_(positions, each.cols)] = tensor_to_numpy(contributions)

    # a decoder's row among source columns has no column there: the rest is a column of its own
    outside = ~matched.any(1).numpy()
    if outside.any():
        contribution_of_itself = contribution_of_parts(output, residual[:, None])
        from_itself = tensor_to_numpy(contribution_of_itself)[:, 0]
        own = positions[outside]
        matrix[own, own] = from_itself[outside]


def contribution_of_parts(output: torch.Tensor, parts: torch.Tensor) -> torch.Tensor:
    """[s c] how much nearer to zero the output [s d] gets when a part [s c d] is taken away, at least 0."""
    whole = output.abs().sum(-1, keepdim=True)
    without_part = output[:, None] - parts
    return (whole - without_part.abs().sum(-1)).clamp_min(0)
