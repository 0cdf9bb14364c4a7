"""Training under word dropout sees exactly what evaluation sees."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raison.core.errors import Unsupported
from raison.core.records import Example, Target
from raison.models.load import load
from raison.models.protocol import Question
from raison.models.tasks.continuation import extended_encoding
from raison.testing import tiny_hf
from raison.testing.precision import Float64
from raison.training.seeds import seeded_generator
from raison.training.word_dropout import Keeps, keep_rule_of
from raison.training.word_dropout_attention import (
    attention_keeping_only,
    heads_within_reach,
    word_dropout_attention,
)

DECODERS = ("gpt2", "llama", "gpt_neox", "mistral", "qwen", "gemma")


WRITERS = ("marian", "bart", "t5")


TEXT = "The film is a lovely surprise, isn't it?"


@pytest.fixture
def precise():
    with Float64():
        yield


def ids_of(size: int, rows: int = 2, vocabulary: int = 300) -> torch.Tensor:
    return torch.randint(5, vocabulary, (rows, size), generator=torch.Generator().manual_seed(size))


def inputs_of(family: str, hf) -> dict[str, torch.Tensor]:
    vocabulary = hf.config.vocab_size
    if family in DECODERS:
        ids = ids_of(11, vocabulary=vocabulary)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    source, target = ids_of(9, vocabulary=vocabulary), ids_of(7, vocabulary=vocabulary)
    mask = torch.ones_like(source)
    mask[1, 6:] = 0  # padding
    return {"input_ids": source, "attention_mask": mask, "decoder_input_ids": target}


@pytest.mark.parametrize("family", DECODERS + WRITERS)
def test_keeping_everything_is_no_dropout_bit_for_bit(family):
    hf, _ = tiny_hf(family, "causal" if family in DECODERS else "seq2seq", double=False)
    inputs = inputs_of(family, hf)
    with torch.no_grad():
        hf.set_attn_implementation("eager")
        plain = hf(**inputs, use_cache=False).logits
        with word_dropout_attention(hf):
            outside = hf(**inputs, use_cache=False).logits
            target = torch.ones(
                2,
                2,
                inputs.get("decoder_input_ids", inputs["input_ids"]).shape[1],
                dtype=torch.bool,
            )
            source = None if family in DECODERS else torch.ones(2, 2, 9, dtype=torch.bool)
            with attention_keeping_only(Keeps(target, source)):
                kept = hf(**inputs, use_cache=False).logits
    assert torch.equal(plain, outside)
    assert torch.equal(plain, kept)


@pytest.mark.parametrize("family", DECODERS)
def test_decoder_rows_are_the_sets_that_evaluation_asks_about(family, precise):
    """Row i under K = raison's score of the next token with everything but K∩<i and i deleted."""
    hf, tokenizer = tiny_hf(family, "causal")
    model = load(hf, tokenizer)
    encoding = model.encode([Example(TEXT)])[0]
    size = len(encoding)
    before = hf.config._attn_implementation
    heads = heads_within_reach(hf, family)["self"]
    keep = (
        keep_rule_of("bernoulli(p=0.4)")
        .draw(torch.ones(3, size, dtype=torch.bool), heads, seeded_generator(3))
        .clone()
    )
    if family in ("llama", "mistral"):
        keep[..., 0] = True  # [CLS], which evaluation never removes
    keep[1, :, 1:] = False  # almost nothing
    ids = torch.from_numpy(encoding.ids.copy())[None].expand(3, -1)
    with word_dropout_attention(hf), attention_keeping_only(Keeps(keep)), torch.no_grad():
        told = hf(
            input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False
        ).logits.log_softmax(-1)
    assert hf.config._attn_implementation == before
    questions = []
    for place in range(1, size):
        target = Target("token", (int(encoding.ids[place]),), (place,), "", "log_prob")
        asked = keep[:, 0].numpy() & (np.arange(size) < place - 1)
        asked[:, place - 1] = True
        questions.append(Question(encoding, target, asked))
    for removal in ("delete", "mask"):
        scored = model.score(questions, removal=removal)
        for place, answer in enumerate(scored, 1):
            ours = told[:, place - 1, int(encoding.ids[place])].numpy()
            np.testing.assert_allclose(ours, answer.value[:, 0], atol=1e-9)


@pytest.mark.parametrize("family", WRITERS)
def test_encoder_decoder_rows_are_the_sets_that_evaluation_asks_about(family, precise):
    """The same with a source, of which one example keeps nothing at all."""
    hf, tokenizer = tiny_hf(family, "seq2seq")
    model = load(hf, tokenizer)
    encoding = extended_encoding(model.encode([Example(TEXT)])[0], [9, 30, 17, 41, 25], model.codec)
    first = model.first_position(encoding)  # of what is written
    length, size = first - 1, len(encoding)
    heads = heads_within_reach(hf, family)
    assert set(heads) == {"encoder", "decoder", "cross"}
    keep = (
        keep_rule_of("bernoulli(p=0.5)")
        .draw(torch.ones(4, size, dtype=torch.bool), 2, seeded_generator(4))
        .clone()
    )
    keep[2, :, :length] = False
    keep[3] = False
    source, target = keep[..., :length], keep[..., length : size - 1]
    ids = torch.from_numpy(encoding.ids.copy())
    inputs = {
        "input_ids": ids[None, :length].expand(4, -1),
        "attention_mask": torch.ones(4, length, dtype=torch.long),
        "decoder_input_ids": ids[None, length : size - 1].expand(4, -1),
    }
    with word_dropout_attention(hf), attention_keeping_only(Keeps(target, source)), torch.no_grad():
        told = hf(**inputs, use_cache=False).logits.log_softmax(-1)
    questions = []
    for place in range(first, size):
        aim = Target("token", (int(ids[place]),), (place,), "", "log_prob")
        asked = keep[:, 0].numpy() & (np.arange(size) < place - 1)
        asked[:, place - 1] = True
        questions.append(Question(encoding, aim, asked))
    scored = model.score(questions, removal="delete")
    for place, answer in enumerate(scored, first):
        ours = told[:, place - first, int(ids[place])].numpy()
        np.testing.assert_allclose(ours, answer.value[:, 0], atol=1e-9)


def test_without_a_kept_source_the_source_does_not_matter(precise):
    """Cross-attention that sees nothing writes exactly zero, forward and backward."""
    hf, _ = tiny_hf("marian", "seq2seq")
    inputs = inputs_of("marian", hf)
    none = torch.zeros(2, 2, 9, dtype=torch.bool)
    seen = []
    for layer in hf.model.decoder.layers:
        layer.encoder_attn.out_proj.register_forward_pre_hook(
            lambda module, args: seen.append(args[0])
        )
    with word_dropout_attention(hf), attention_keeping_only(Keeps(None, none)):
        logits = hf(**inputs, use_cache=False).logits
        other = hf(**{**inputs, "input_ids": inputs["input_ids"].flip(1)}, use_cache=False).logits
    assert len(seen) == 4 and not any(written.any() for written in seen)
    assert torch.equal(logits, other)
    logits.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in hf.parameters() if p.grad is not None)
    assert (
        hf.model.encoder.layers[0].fc1.weight.grad is None
        or not hf.model.encoder.layers[0].fc1.weight.grad.any()
    )
    with word_dropout_attention(hf), attention_keeping_only(Keeps(None, ~none)):
        assert not torch.equal(hf(**inputs, use_cache=False).logits, logits)


def test_heads_of_their_own_see_their_own_words():
    """With one layer, head 0 blind for a word and head 1 not: switching head 1 off makes the word disappear."""
    hf, _ = tiny_hf("gpt2", "causal")
    hf.transformer.h = hf.transformer.h[:1]
    inputs = inputs_of("gpt2", hf)
    changed = {**inputs, "input_ids": inputs["input_ids"].clone()}
    changed["input_ids"][:, 4] += 1
    keep = torch.ones(2, 2, 11, dtype=torch.bool)
    keep[:, 0, 4] = False

    def last(given):
        with word_dropout_attention(hf), attention_keeping_only(Keeps(keep)), torch.no_grad():
            return hf(**given, use_cache=False).logits[:, -1]

    assert not torch.equal(last(inputs), last(changed))
    with torch.no_grad():
        hf.transformer.h[0].attn.c_proj.weight[8:] = 0  # what head 1 writes
    assert torch.equal(last(inputs), last(changed))


def test_a_family_out_of_reach_is_refused():
    class Closed(torch.nn.Module):
        """Looks back without any attention."""

        def __init__(self):
            super().__init__()
            from transformers import GPT2Config

            self.config = GPT2Config(vocab_size=50)
            self.table = torch.nn.Embedding(50, 50)

        def forward(self, input_ids, attention_mask=None, use_cache=None):
            from types import SimpleNamespace

            return SimpleNamespace(logits=self.table(input_ids).cumsum(1))

    with pytest.raises(
        Unsupported, match="The attention of closed can't be reached.*use another model"
    ):
        heads_within_reach(Closed(), "closed")
    hf, _ = tiny_hf("gpt2", "causal")
    getattr(
        hf, "activation_checkpointing_enable", hf.gradient_checkpointing_enable
    )()  # as transformers 5.23 calls it
    with (
        pytest.raises(Unsupported, match="turn checkpointing off first"),
        word_dropout_attention(hf),
    ):
        pass


def test_the_callers_config_is_what_it_was_even_after_an_error():
    hf, _ = tiny_hf("bart", "seq2seq")
    hf.set_attn_implementation("sdpa")
    with pytest.raises(ZeroDivisionError), word_dropout_attention(hf):
        assert hf.config._attn_implementation != "sdpa"
        raise ZeroDivisionError
    assert {m.config._attn_implementation for m in hf.modules() if hasattr(m, "config")} == {"sdpa"}
    assert not any(hasattr(module, "raison_kind") for module in hf.modules())
