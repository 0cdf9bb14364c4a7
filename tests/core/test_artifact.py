"""Fitted things in files."""

from __future__ import annotations

import pytest

from raison.core.artifact import Artifact
from raison.core.errors import InputError


def test_a_broken_artifact_is_named(tmp_path):
    path = tmp_path / "heads.json"
    for text in ("", "{", "[" * 100_000):
        path.write_text(text)
        with pytest.raises(InputError, match="heads.json.*raison heads"):
            Artifact.open(path, "heads")
    with pytest.raises(InputError):
        Artifact.open("\x00", "heads")
