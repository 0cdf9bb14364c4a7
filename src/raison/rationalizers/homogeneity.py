"""Homogeneity: how alike the token states of a text are, layer by layer, and where to split an encoder (P1 Figure 2).

    spread_l = (1/T) Σ_t ‖h_t − h̄‖²  (trace of the covariance)      cosine_l = mean over pairs of cos(h_t, h_u)

Deep layers make tokens alike, and what is alike can't be selected from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel

from raison.core.errors import InputError
from raison.core.json_record import Record
from raison.rationalizers.block_ranges import apply_final_norm, blocks_of_encoder, run_blocks

__all__ = ["Homogeneity", "blocks_by_homogeneity", "measure_homogeneity"]

WIDE = 0.9  # share of the widest spread at which tokens still differ enough to be told apart


@dataclass(frozen=True, eq=False)
class Homogeneity(Record):
    """Of the embeddings (first) and behind each block."""

    spread: tuple[float, ...]
    cosine: tuple[float, ...]
    texts: int


@torch.inference_mode()
def measure_homogeneity(
    encoder: PreTrainedModel, batches: Sequence[dict[str, torch.Tensor]]
) -> Homogeneity:
    """Means over texts; `batches` are the encoder's arguments, with `real` [b t] saying which tokens are words."""
    depth = len(blocks_of_encoder(encoder)[1])
    spreads, cosines = [], []
    for batch in batches:
        inputs = {key: value for key, value in batch.items() if key != "real"}
        ran = run_blocks(encoder, 0, depth, inputs)
        # without the norm a growing stream looks spread
        normed = [apply_final_norm(encoder, states, inputs) for states in ran.left]
        for row, real in enumerate(batch["real"]):
            if real.sum() < 2:
                continue
            states_of_row = [states[row][real] for states in (ran.entered, *normed)]
            layers = torch.stack(states_of_row).cpu().double()  # [l t d]
            spreads.append(spread_of_token_states(layers))
            cosines.append(mean_cosine_of_token_states(layers))
    if not spreads:
        raise InputError(
            "No text has two tokens whose states could be compared: give longer texts."
        )
    return Homogeneity(
        spread=tuple(torch.stack(spreads).mean(0).tolist()),
        cosine=tuple(torch.stack(cosines).mean(0).tolist()),
        texts=len(spreads),
    )


def spread_of_token_states(layers: torch.Tensor) -> torch.Tensor:
    """[l] trace of the covariance of the states [l t d] of a text."""
    deviations = layers - layers.mean(1, keepdim=True)
    return deviations.square().sum(-1).mean(1)


def mean_cosine_of_token_states(layers: torch.Tensor) -> torch.Tensor:
    """[l] mean cosine of two different tokens' states [l t d]."""
    unit = torch.nn.functional.normalize(layers, dim=-1)
    size = unit.shape[1]
    cosines_of_all_pairs = unit.sum(1).square().sum(-1)
    return (cosines_of_all_pairs - size) / (size * (size - 1))


def blocks_by_homogeneity(measured: Homogeneity, *, rest: bool) -> int:
    """Blocks of the generator: the deepest block whose tokens are still spread at least 0.9 times as wide as anywhere.

    Where the rest of the blocks predicts, at least one is left to it.
    """
    behind = np.array(measured.spread[1:])
    wide = np.flatnonzero(behind >= WIDE * behind.max()) + 1
    most = len(behind)
    if rest:
        most -= 1
    return int(min(wide[-1], most))
