"""Value-weighted attention: attention times the length of what it carries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.parameters import check_choice
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.rollout import (
    last_maps,
    map_on_axis,
    maps_of_answer,
    mean_of_maps_by_kind,
    normalise_rows,
    roll_out,
    rows_of_answer,
    sum_of_maps,
)
from raison.methods.trace_answers import answers_from_traces, tensor_to_numpy
from raison.models.attention.residual_writes import Write
from raison.models.protocol import Model, Trace

__all__ = ["ValueWeightedAttention"]


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
        check_choice("layers", self.layers, ("last", "mean", "rollout"))

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        def answer(trace: Trace) -> Answer:
            return Answer(rows_of_answer(trace, self.combine_layers(trace)))

        return answers_from_traces(model, batch, self.watches, answer)

    def combine_layers(self, trace: Trace) -> np.ndarray:
        """[t t] lengths of all layers, rolled out or averaged, or of the last one."""
        size = len(trace.encoding)
        norms = [lengths_of_values(write) for write in trace.writes]
        if self.layers == "rollout":
            residual = np.eye(size)
            blocks = []
            for each, norm in zip(trace.maps, norms, strict=True):
                block = normalise_rows(map_on_axis(size, each, norm))
                blocks.append((block + residual) / 2)
            return roll_out(blocks, size)

        norm_of_map = {}
        for each, norm in zip(trace.maps, norms, strict=True):
            norm_of_map[id(each)] = norm
        if self.layers == "mean":
            maps = maps_of_answer(trace.maps)
            weighted = [(each, norm_of_map[id(each)]) for each in maps]
            return mean_of_maps_by_kind(size, weighted)
        maps = last_maps(trace.maps)
        weighted = [(each, norm_of_map[id(each)]) for each in maps]
        return sum_of_maps(size, weighted)


def lengths_of_values(write: Write) -> np.ndarray:
    """[s c] how long the vector is that a row gets from a column, summed over heads."""
    lengths_of_columns = write.values.norm(dim=-1)
    lengths = write.weights * lengths_of_columns[:, None]  # [h s c]
    return tensor_to_numpy(lengths.sum(0))
