"""BART: learned positions looked up inside the model, which takes no `position_ids`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from raison.models.attention.call import running_call
from raison.models.families import Family, register_family


def place_bart_table(table: Any, stream: int) -> None:
    """Make a position table of the view answer with the positions of the running call, where it has any."""
    plain_positions: Callable[..., torch.Tensor] = table.forward

    def forward(*args: Any, **kwargs: Any) -> torch.Tensor:
        call = running_call.get()
        if call is None or call.positions is None:
            return plain_positions(*args, **kwargs)
        # the table is not asked about indices first: a packed sequence is longer than the table
        positions = call.positions[min(stream, len(call.positions) - 1)]
        looked_up: torch.Tensor = nn.functional.embedding(
            positions + getattr(table, "offset", 0), table.weight
        )
        return looked_up

    table.forward = forward


def prepare_bart(model: nn.Module) -> None:
    """Give the view its position tables: the encoder's is stream 0, the decoder's stream 1."""
    for name, module in model.named_modules():
        if name.endswith("embed_positions"):
            place_bart_table(module, int("decoder" in name.split(".")))


FAMILY = register_family(
    Family(
        "bart",
        ("bart", "mbart"),
        positions="module",
        prepare=prepare_bart,
        note="learned positions inside the model",
    )
)
