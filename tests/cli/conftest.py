"""A model that commands open."""

from __future__ import annotations

from pathlib import Path

import pytest

from raison.testing import tiny_hf


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A saved tiny classifier."""
    place = tmp_path_factory.mktemp("models") / "tiny-classifier"
    model, tokenizer = tiny_hf("bert", "classification", double=False)
    model.config.id2label = {0: "dull", 1: "neutral", 2: "lovely"}
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place
