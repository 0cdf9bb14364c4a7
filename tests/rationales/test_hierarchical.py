"""Searches from coarse to fine units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import raison
from raison.core.units import group_tokens
from raison.testing import tiny_hf, tiny_model
from tests.helpers.searches import (
    rationale,
    verify,
)


@pytest.mark.parametrize("level", ["token", "word", "sentence", "passage", "slot"])
def test_units_of_every_level(level, precise):
    text = raison.Example.from_template(
        "Read: {first}\n\n{second} What is it?",
        first="It is a hill. It is old.",
        second="The film is good.",
    )
    hf, tokenizer = tiny_hf("llama", "causal")
    hf.config.max_position_embeddings = 256
    function = raison.load(lambda texts: [[float("hill" in t), 0.5] for t in texts])
    for model in (raison.load(hf, tokenizer), tiny_model("bert", "classification"), function):
        for search in ("refined", "hierarchical"):
            about = rationale(model, text, search, units=level)
            assert about.units.level == level and verify(model, about).sufficient
    kept = about.units.names[about.order[0]]
    wanted = {"sentence": "It is a hill.", "passage": "It is a hill. It is old.", "slot": "first"}
    assert kept == wanted.get(level, "hill")


def long_text() -> tuple[str, int]:
    """Passages of sentences; two words far apart matter."""
    filler = "The old town lies on a hill. Nobody expected it. "
    passages = [filler * 3 for _ in range(12)]
    passages[3] = filler + "The needle is here. " + filler
    passages[8] = "And a thread is there. " + filler
    return "\n\n".join(passages), len(passages)


def test_hierarchical_finds_two_words_in_a_long_text():
    asked_texts = []

    def sew(texts):
        asked_texts.extend(texts)
        return [[float("needle" in t) + float("thread" in t), 1.5] for t in texts]

    text, count = long_text()
    model = raison.load(sew)
    about = rationale(model, text, "hierarchical", units="word")
    assert sorted(about.units.names[u] for u in about.order) == ["needle", "thread"]
    assert verify(model, about).irreducible and len(asked_texts) < len(about.units)
    levels = nested(about)
    assert levels[0] == {"level": "passage", "kept": 2, "of": count}
    assert [level["level"] for level in levels] == ["passage", "sentence", "word"]


def nested(about) -> list[dict[str, Any]]:
    """The levels of a hierarchical search; what is selected stands in what each level kept."""
    levels = about.levels
    free = about.units.of >= 0
    for level in levels:
        of = group_tokens(about.encoding, level["level"], free).of
        touched = np.unique(of[np.isin(about.units.of, np.flatnonzero(about.selected))])
        assert len(touched) <= level["kept"] <= level["of"]
    return levels


@pytest.mark.parametrize(
    "search", ["hierarchical", "hierarchical(search=greedy)", "hierarchical(search=exact)"]
)
def test_hierarchical_on_a_language_model(search, precise):
    hf, tokenizer = tiny_hf("llama", "causal", seed=1)
    hf.config.max_position_embeddings = 512
    model = raison.load(hf, tokenizer)
    text = "\n\n".join(
        ["The film is good. Nobody expected it.", "She said it. He left.", "Where is the town? In"]
    )
    for level in ("word", "token"):
        about = rationale(model, text, search, units=level)
        assert verify(model, about).sufficient
        nested(about)


@pytest.mark.parametrize("level", ["token", "word"])
def test_windows_of_long_contexts(level, precise):
    """More units than are searched whole: windows at the end come first, and the answer is still verified."""
    hf, tokenizer = tiny_hf("gpt_neox", "causal", seed=2)
    hf.config.max_position_embeddings = 512
    model = raison.load(hf, tokenizer)
    about = rationale(
        model, "The old town lies on a hill and nobody expected it. " * 4, units=level
    )
    claim = verify(model, about)
    assert claim.sufficient and claim.irreducible
    short = rationale(model, "The old town lies on a hill", "refined(short=2)", units=level)
    assert verify(model, short).irreducible
