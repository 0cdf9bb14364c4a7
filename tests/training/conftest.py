"""Prose to train on."""

from __future__ import annotations

from pathlib import Path

import pytest

from raison.testing.tiny import TEXTS


@pytest.fixture
def prose(tmp_path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(f"{text} {i}" for i in range(12) for text in TEXTS), encoding="utf-8")
    return path
