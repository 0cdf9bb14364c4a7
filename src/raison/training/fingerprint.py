"""Marks by which weights are known: a name may stand for other ones tomorrow."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

__all__ = ["model_mark", "weights_mark"]

PIECE = 2**24  # bytes read at once


def weights_mark(weights: Iterable[torch.Tensor]) -> str:
    """Of tensors: their shapes, kinds and bytes."""
    made = hashlib.blake2b(digest_size=8)
    for value in weights:
        made.update(f"{tuple(value.shape)} {value.dtype}".encode())
        flat: Any = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        made.update(flat)
    return made.hexdigest()


def model_mark(model: Any) -> str:
    """Of a model in memory or a folder; a name of the hub or of the catalog stands for itself."""
    if not isinstance(model, (str, os.PathLike)):
        return weights_mark(model.parameters())
    place = Path(model).expanduser()
    if not place.is_dir():
        return ""
    made = hashlib.blake2b(digest_size=8)
    for file in sorted(place.glob("*.safetensors")):
        made.update(file.name.encode())
        with open(file, "rb") as opened:
            while piece := opened.read(PIECE):
                made.update(piece)
    return made.hexdigest()
