"""BART: learned positions looked up inside the model, which takes no `position_ids`."""

from __future__ import annotations

import torch
from torch import nn

from raison.models.families import Family, family
from raison.models.tap import current


def place(module: nn.Module, stream: int) -> None:
    """Make a position table answer with the positions of the running call, where it has any."""

    def supply(table: nn.Module, args: tuple, output: torch.Tensor) -> torch.Tensor | None:
        call = current()
        if call is None or call.positions is None:
            return None
        positions = call.positions[min(stream, len(call.positions) - 1)]
        return nn.functional.embedding(positions + getattr(table, "offset", 0), table.weight).to(output)  # type: ignore[arg-type]

    module.register_forward_hook(supply)


def prepare(model: nn.Module) -> None:
    """Hook the position tables of the view: the encoder's is stream 0, the decoder's stream 1."""
    for name, module in model.named_modules():
        if name.endswith("embed_positions"):
            place(module, int("decoder" in name.split(".")))


FAMILY = family(
    Family("bart", ("bart", "mbart"), positions="module", prepare=prepare, note="learned positions inside the model")
)
