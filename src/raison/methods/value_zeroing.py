"""Value zeroing: how far a token's state moves when another token's value is switched off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.parameters import check_choice
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.rollout import map_on_axis, normalise_rows, roll_out, rows_of_answer
from raison.methods.trace_answers import answers_from_traces, tensor_to_numpy
from raison.models.protocol import Map, Model, Trace

__all__ = ["ValueZeroing"]


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
        check_choice("layers", self.layers, ("last", "rollout"))

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        def answer(trace: Trace) -> Answer:
            size = len(trace.encoding)
            blocks = [value_zeroing_matrix_of_block(size, each) for each in trace.zeroed]
            combined = blocks[-1]
            if self.layers == "rollout":
                combined = roll_out(blocks, size)
            return Answer(rows_of_answer(trace, combined))

        return answers_from_traces(model, batch, frozenset({"zeroed", "readout"}), answer)


def value_zeroing_matrix_of_block(size: int, each: Map) -> np.ndarray:
    """[t t] how far each row of a block moves; rows that are not its own stay with themselves."""
    distances = tensor_to_numpy(each.weights[0])
    matrix = normalise_rows(map_on_axis(size, each, distances))
    others = np.setdiff1d(np.arange(size), each.rows)
    matrix[others] = np.eye(size)[others]
    return matrix
