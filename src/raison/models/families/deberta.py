"""DeBERTa v2 and v3: content and position attend to each other by relative distance.

Its attention does not pass through transformers' interface, so maps are recorded by a function mode. The
distances of a shortened input are supplied by original positions, so that deleting equals masking.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from raison.models.attention.call import running_call
from raison.models.families import Family, register_family

Positions = Callable[..., "torch.Tensor | None"]


def relative_positions(encoder: Any, plain: Positions) -> Positions:
    """Replace `get_rel_pos` of the view's encoder: bucketed distances of original positions."""

    def get_rel_pos(
        hidden: torch.Tensor, query: torch.Tensor | None = None, relative: object = None
    ) -> torch.Tensor | None:
        call = running_call.get()
        if (
            call is None
            or call.positions is None
            or not encoder.relative_attention
            or relative is not None
        ):
            return plain(hidden, query, relative)
        positions = call.positions[0]
        distance = positions[:, :, None] - positions[:, None, :]  # [b s t]
        if encoder.position_buckets > 0:
            bucket = sys.modules[type(encoder).__module__].make_log_bucket_position
            distance = bucket(distance, encoder.position_buckets, encoder.max_relative_positions)
        # the code behind takes one distance matrix per head and example only in this shape: [1, b*h, s, t]
        heads = encoder.layer[0].attention.self.num_attention_heads
        return distance.to(torch.long).repeat_interleave(heads, dim=0)[None]

    return get_rel_pos


def prepare_deberta(model: nn.Module) -> None:
    """Give the view original positions where it computes distances."""
    modules: list[Any] = list(model.modules())
    for module in modules:
        if hasattr(module, "get_rel_pos") and hasattr(module, "max_relative_positions"):
            module.get_rel_pos = relative_positions(module, module.get_rel_pos)


FAMILY = register_family(
    Family(
        "deberta",
        ("deberta-v2",),
        prepare=prepare_deberta,
        note="relative positions; attention read by a function mode",
    )
)
