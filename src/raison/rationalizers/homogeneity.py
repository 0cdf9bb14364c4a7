"""How alike the token states of a text are, layer by layer (P1 Figure 2), and where to split an encoder by it.

    spread_l = (1/T) Σ_t ‖h_t − h̄‖²  (trace of the covariance)      cosine_l = mean over pairs of cos(h_t, h_u)

Deep layers make tokens alike, and what is alike can't be selected from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from raison.core.errors import InputError
from raison.rationalizers.block_ranges import blocks_of, normed, stretch

__all__ = ["Homogeneity", "homogeneity", "split_of"]

WIDE = 0.9  # share of the widest spread at which tokens still differ enough to be told apart


@dataclass(frozen=True)
class Homogeneity:
    """Of the embeddings (first) and behind each block."""

    spread: tuple[float, ...]
    cosine: tuple[float, ...]
    texts: int


@torch.inference_mode()
def homogeneity(encoder: Any, batches: Sequence[dict[str, torch.Tensor]]) -> Homogeneity:
    """Means over texts; `batches` are the encoder's arguments, with `real` [b t] saying which tokens are words."""
    depth = len(blocks_of(encoder)[1])
    spreads, cosines = [], []
    for batch in batches:
        inputs = {key: value for key, value in batch.items() if key != "real"}
        seen = stretch(encoder, 0, depth, inputs)
        behind = [normed(encoder, states, inputs) for states in seen.left]  # else a growing stream looks spread
        for row, real in enumerate(batch["real"]):
            if real.sum() < 2:
                continue
            layers = torch.stack([states[row][real] for states in (seen.entered, *behind)]).cpu().double()  # [l t d]
            spreads.append((layers - layers.mean(1, keepdim=True)).square().sum(-1).mean(1))
            unit = torch.nn.functional.normalize(layers, dim=-1)
            size = unit.shape[1]
            cosines.append(((unit.sum(1).square().sum(-1)) - size) / (size * (size - 1)))
    if not spreads:
        raise InputError("No text has two tokens whose states could be compared: give longer texts.")
    spread, cosine = (torch.stack(rows).mean(0).tolist() for rows in (spreads, cosines))
    return Homogeneity(tuple(spread), tuple(cosine), len(spreads))


def split_of(found: Homogeneity, *, rest: bool) -> int:
    """Blocks of the generator: the deepest block whose tokens are still spread at least 0.9 times as wide as anywhere.

    Where the rest of the blocks predicts, at least one is left to it.
    """
    behind = np.array(found.spread[1:])
    able = np.flatnonzero(behind >= WIDE * behind.max()) + 1
    return int(min(able[-1], len(behind) - 1 if rest else len(behind)))
