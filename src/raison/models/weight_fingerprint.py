"""The fingerprint of a model's weights: equal for equal names, shapes, kinds and bytes, wherever they lie."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

import torch

from raison.core.fingerprint import sha256_of_file

__all__ = ["bytes_of_tensor", "bytes_of_weights", "fingerprint_of_model", "fingerprint_of_weights"]

PIECE = 1 << 24  # bytes handed over at once
DIGEST_BYTES = 8

NamedTensors = Iterable[tuple[str, torch.Tensor]]


class Digest(Protocol):
    """A running hash, such as those of hashlib."""

    def update(self, data: bytes | memoryview, /) -> None: ...


def fingerprint_of_weights(named: NamedTensors) -> str:
    """The fingerprint of tensors with their names, in hexadecimal digits; their order does not matter."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for piece in bytes_of_weights(named):
        digest.update(piece)
    return digest.hexdigest()


def fingerprint_of_model(model: str | os.PathLike[str] | torch.nn.Module) -> str:
    """The fingerprint of a model in memory or in a folder; "" for a name, which stands for itself."""
    if isinstance(model, torch.nn.Module):
        return fingerprint_of_weights(model.named_parameters())

    folder = Path(model).expanduser()
    if not folder.is_dir():
        return ""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for file in sorted(folder.glob("*.safetensors")):
        digest.update(f"{file.name}|{sha256_of_file(file)}|".encode())
    return digest.hexdigest()


def bytes_of_weights(named: NamedTensors) -> Iterator[bytes | memoryview]:
    """All that tells weights apart, for a hash that other things go into as well; sorted by name."""
    for name, tensor in sorted(named, key=lambda pair: pair[0]):
        yield f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode()
        raw = bytes_of_tensor(tensor)
        for start in range(0, len(raw), PIECE):
            yield raw[start : start + PIECE]


def bytes_of_tensor(tensor: torch.Tensor) -> memoryview:
    """The numbers of a tensor as they lie in memory."""
    flat = tensor.detach().cpu().contiguous().flatten()
    # as bytes, since NumPy does not know all kinds of numbers (bfloat16)
    return flat.view(torch.uint8).numpy().data
