"""Roll-out of attention maps over blocks, on the one axis of an encoding: which token each row got its content from.

A map of attention (or of anything else that says how much row i takes from column j) is laid on a matrix over the
whole axis, whatever streams it connects: an encoder's own words, a decoder's, or a decoder's words and the source. So a
roll-out is one product of matrices for every architecture, and the blocks R_ss, R_tt, R_ts of the literature are parts
of one matrix.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import torch

from raison.methods.trace_answers import tensor_to_numpy
from raison.models.protocol import Map, Trace

__all__ = [
    "last_maps",
    "map_on_axis",
    "maps_of_answer",
    "mean_map_of_heads",
    "mean_of_maps_by_kind",
    "normalise_rows",
    "roll_out",
    "rows_of_answer",
    "sum_of_maps",
]


def map_on_axis(size: int, each: Map, weights: np.ndarray) -> np.ndarray:
    """[t t] with `weights` [s c] at the map's rows and columns, and zeros elsewhere."""
    matrix = np.zeros((size, size))
    matrix[np.ix_(each.rows, each.cols)] = weights
    return matrix


def normalise_rows(matrix: np.ndarray) -> np.ndarray:
    """Rows that add up to one; a row of zeros stays with itself."""
    total = matrix.sum(1, keepdims=True)
    shares = matrix / np.where(total > 0, total, 1.0)
    return np.where(total > 0, shares, np.eye(len(matrix)))


def roll_out(matrices: Iterable[np.ndarray], size: int) -> np.ndarray:
    """M_L ··· M_1: what each row of the last block has of each token of the first."""
    result = np.eye(size)
    for matrix in matrices:
        result = matrix @ result
    return result


def rows_of_answer(trace: Trace, matrix: np.ndarray) -> np.ndarray:
    """[t] of [t t]: the rows from which the answer is read, in their shares."""
    return np.asarray(trace.readout @ matrix)


def mean_map_of_heads(tensor: torch.Tensor) -> np.ndarray:
    """[s c] of [h s c]."""
    return tensor_to_numpy(tensor.mean(0))


def maps_of_answer(maps: Sequence[Map]) -> list[Map]:
    """The maps that the answer is read through: of an encoder-decoder, its decoder's and its cross-attention."""
    return [each for each in maps if each.kind != "encoder"]


def last_maps(maps: Sequence[Map]) -> list[Map]:
    """The last of each kind of map that the answer is read through."""
    last_of_kind = {each.kind: each for each in maps_of_answer(maps)}
    return list(last_of_kind.values())


def sum_of_maps(size: int, maps: Iterable[tuple[Map, np.ndarray]]) -> np.ndarray:
    """[t t] the sum of maps, each with its weights [s c]."""
    total = np.zeros((size, size))
    for each, weights in maps:
        total += map_on_axis(size, each, weights)
    return total


def mean_of_maps_by_kind(size: int, maps: Sequence[tuple[Map, np.ndarray]]) -> np.ndarray:
    """[t t] the mean of all maps of a kind, each with its weights [s c]; kinds are added up."""
    layers = Counter(each.kind for each, _ in maps)
    total = np.zeros((size, size))
    for each, weights in maps:
        total += map_on_axis(size, each, weights) / layers[each.kind]
    return total
