"""How tokens mix, block after block, on the one axis of an encoding.

A map of attention (or of anything else that says how much row i takes from column j) is lifted to a matrix over the
whole axis, whatever streams it connects: an encoder's own words, a decoder's, or a decoder's words and the source. So a
roll-out is one product of matrices for every architecture, and the blocks R_ss, R_tt, R_ts of the literature are parts
of one matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch

from raison.models.protocol import Map, Trace

__all__ = ["at_answer", "lifted", "normalised", "rolled_out"]


def lifted(size: int, each: Map, weights: np.ndarray) -> np.ndarray:
    """[t t] with `weights` [s c] at the map's rows and columns, and zeros elsewhere."""
    matrix = np.zeros((size, size))
    matrix[np.ix_(each.rows, each.cols)] = weights
    return matrix


def normalised(matrix: np.ndarray) -> np.ndarray:
    """Rows that add up to one; a row of zeros stays with itself."""
    total = matrix.sum(1, keepdims=True)
    return np.where(total > 0, matrix / np.where(total > 0, total, 1.0), np.eye(len(matrix)))


def rolled_out(matrices: Iterable[np.ndarray], size: int) -> np.ndarray:
    """M_L ··· M_1: what each row of the last block has of each token of the first."""
    result = np.eye(size)
    for matrix in matrices:
        result = matrix @ result
    return result


def at_answer(trace: Trace, matrix: np.ndarray) -> np.ndarray:
    """[t] of [t t]: the rows from which the answer is read, in their shares."""
    return np.asarray(trace.readout @ matrix)


def heads_mean(each: Map, of: Callable[[Map], torch.Tensor]) -> np.ndarray:
    """[s c] mean over heads."""
    return of(each).mean(0).cpu().double().numpy()


def last_of_each(maps: Sequence[Map]) -> list[Map]:
    """The last map that the answer is read through: of an encoder-decoder, its decoder's and its cross-attention."""
    kinds = [kind for kind in dict.fromkeys(m.kind for m in maps) if kind != "encoder"]
    return [[m for m in maps if m.kind == kind][-1] for kind in kinds]
