"""T5: no positions at all but a bias for each distance, which is gathered here by original positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from raison.models.attention.call import running_call
from raison.models.families import Family, register_family


def relative_bias(
    module: Any, plain: Callable[..., torch.Tensor], stream: int
) -> Callable[..., torch.Tensor]:
    """Replace `compute_bias` of one attention of the view: distances of original positions, per example."""

    def compute_bias(query_length: int, key_length: int, **kwargs: Any) -> torch.Tensor:
        call = running_call.get()
        if call is None or call.positions is None:
            return plain(query_length, key_length, **kwargs)
        if call.packed is not None and module.is_decoder:
            distance = (call.packed.seen - call.packed.positions[:, None])[
                None
            ]  # [1 q d], to the ancestors
        else:
            positions = call.positions[min(stream, len(call.positions) - 1)]
            distance = positions[:, None, :] - positions[:, :, None]  # [b s t]
        buckets = module._relative_position_bucket(
            distance,
            bidirectional=not module.is_decoder,
            num_buckets=module.relative_attention_num_buckets,
            max_distance=module.relative_attention_max_distance,
        )
        bias: torch.Tensor = module.relative_attention_bias(buckets)
        return bias.permute(0, 3, 1, 2)

    return compute_bias


def prepare_t5(model: nn.Module) -> None:
    for name, module in model.named_modules():
        if getattr(module, "has_relative_attention_bias", False):
            module.compute_bias = relative_bias(
                module, module.compute_bias, int("decoder" in name.split("."))
            )


FAMILY = register_family(
    Family(
        "t5",
        ("t5", "mt5"),
        positions="relative",
        prepare=prepare_t5,
        note="a learned bias per distance",
    )
)
