"""Pads rows of numbers to one length, for a batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch

__all__ = ["pad_rows"]


def pad_rows(rows: Sequence[Sequence[int]], fill: int) -> tuple[torch.Tensor, torch.Tensor]:
    """[b t] rows filled up on the right, and where they are real."""
    lengths = torch.tensor([len(row) for row in rows])
    width = int(lengths.max())
    padded = []
    for row in rows:
        filling = [fill] * (width - len(row))
        padded.append([*row, *filling])
    real = torch.arange(width) < lengths[:, None]
    return torch.tensor(padded, dtype=torch.long), real
