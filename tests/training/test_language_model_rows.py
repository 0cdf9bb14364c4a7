"""Texts as blocks of tokens."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError
from raison.core.records import Example
from raison.models.load import load
from raison.testing import tiny_hf
from raison.training.language_model_rows import join_language_materials, language_model_blocks


def test_blocks_hold_the_text_once_and_hold_some_of_it_out(prose):
    model = load(*tiny_hf("llama", "causal"))
    texts = [Example(prose.read_text(encoding="utf-8"))]
    found = language_model_blocks(model, texts, length=24, held=0.1, batch=4)
    rows = found.train + found.held
    assert found.lead == 1 and all(
        len(row.target) == 24 and row.target[0] == 1 for row in rows
    )  # [CLS] leads
    stream = [i for row in rows for i in row.target[1:]]
    assert stream == model.codec(texts[0].text + "\n", special=False).ids[: len(stream)].tolist()
    assert found.counts["blocks held out"] == len(found.held) == round(0.1 * len(rows))
    assert not {row.target for row in found.train} & {row.target for row in found.held}
    gpt = load(*tiny_hf("gpt2", "causal"))
    assert language_model_blocks(gpt, texts, length=24, held=0.1, batch=4).lead == 0
    phrase = " the film is a lovely surprise"  # again and again: what is held out stands in the rest as well
    length = 2 * len(gpt.codec(phrase, special=False).ids)
    with pytest.raises(
        InputError, match=f"gives 0 blocks of {length} tokens to train on, less than a batch of 1"
    ):
        language_model_blocks(gpt, [Example(phrase * 200)], length=length, held=0.1, batch=1)


def test_several_texts_give_as_many_tokens_each_and_hold_out_their_own_share(prose):
    model = load(*tiny_hf("gpt2", "causal"))
    text = prose.read_text(encoding="utf-8")
    settings = {"length": 24, "held": 0.1, "batch": 4, "most": 24 * 20 + 5}
    parts = [
        language_model_blocks(model, [Example(text)] * 3, **settings),
        language_model_blocks(model, [Example(text[::-1])], **settings),
    ]
    assert [part.counts["tokens read"] for part in parts] == [485, 485]
    rows = [*parts[0].train, *parts[0].held]
    assert [i for row in rows for i in row.target] == model.codec(text, special=False).ids[
        :480
    ].tolist()
    both = join_language_materials(parts)
    assert both.train == parts[0].train + parts[1].train and len(both.held) == 4
    assert both.held[::2] == parts[0].held and both.held[1::2] == parts[1].held
    assert both.counts["tokens left over"] == 10 and join_language_materials(parts[:1]) is parts[0]
