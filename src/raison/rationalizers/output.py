"""What a pass of a rationalizer gives: logits, rationale, masks and margins of each pruning block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from transformers.utils.generic import ModelOutput

__all__ = ["Generated", "RationalizerOutput"]

# transformers wants None as the default of all outputs; `forward` gives them all
FILLED_IN = cast(torch.Tensor, None)


@dataclass
class RationalizerOutput(ModelOutput):
    """The answer from the rationale, and all that training and diagnostics read."""

    logits: torch.Tensor = FILLED_IN  # [b c]
    rationale: torch.Tensor = FILLED_IN  # [b t] what the predictor read, 0 or 1
    # M_i [b t] behind each pruning block
    masks: tuple[torch.Tensor, ...] = cast("tuple[torch.Tensor, ...]", None)
    # [b t] behind each pruning block: how much more is said for keeping than for dropping
    margins: tuple[torch.Tensor, ...] = cast("tuple[torch.Tensor, ...]", None)
    # [b] two tokens might stay, and but for the rule that one does, none would
    empty: torch.Tensor = FILLED_IN
    real: torch.Tensor = FILLED_IN  # [b t] tokens that may be selected
    side: torch.Tensor = FILLED_IN  # [b t] which text of a pair
    full_logits: torch.Tensor | None = None  # [b c] from the full text
    soft_logits: torch.Tensor | None = None  # [b c] A2R's other predictor


@dataclass
class Generated:
    """What the generator did."""

    masks: list[torch.Tensor]
    margins: list[torch.Tensor]
    empty: torch.Tensor
    entered: torch.Tensor  # [b t d] input embeddings
    mid: torch.Tensor  # [b t d] states before the first pruning block
