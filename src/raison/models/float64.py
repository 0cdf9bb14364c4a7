"""Sums and small differences in float64: on the model's device where it has that, else on the CPU."""

from __future__ import annotations

import torch

__all__ = ["COARSE", "as_float64"]

COARSE = {"mps"}  # kinds of devices without float64


def as_float64(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers in float64."""
    return (tensor.cpu() if tensor.device.type in COARSE else tensor).double()
