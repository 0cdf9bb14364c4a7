"""Fingerprints of files (SHA-256): a name may stand for another content tomorrow.

The fingerprint of a model's weights is in models/weight_fingerprint.py, since it needs torch.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

__all__ = ["sha256_of_file"]

PIECE = 1 << 20  # bytes read at once


def sha256_of_file(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()
