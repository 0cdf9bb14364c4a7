"""Word dropout: what is drawn, who may look at whom, and that training sees exactly what evaluation sees."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from raison.core.errors import InputError, UnknownName, Unsupported
from raison.core.records import Example, Target
from raison.models.load import load
from raison.models.protocol import Question
from raison.models.tasks.continuation import extended
from raison.testing import tiny_hf
from raison.testing.precision import Float64
from raison.training.dropout import Keeps, Side, drawn, keep_rules, pairs, rule_of
from raison.training.dropout_attention import attending, keeping_only, reach_of
from raison.training.seeds import generator

DECODERS = ("gpt2", "llama", "gpt_neox", "mistral", "qwen", "gemma")
WRITERS = ("marian", "bart", "t5")
TEXT = "The film is a lovely surprise, isn't it?"


# -- what is drawn ---------------------------------------------------------------------------------------------


def sample(rule: str, times: int = 4000, length: int = 4, heads: int = 2) -> torch.Tensor:
    """[times h t]"""
    return rule_of(rule).draw(torch.ones(times, length, dtype=torch.bool), heads, generator(0))


def test_uniform_length_draws_every_size_and_every_set_alike():
    kept = sample("uniform_length", 20_000)
    assert torch.equal(kept[:, 0], kept[:, 1])  # one set for all heads
    sizes = Counter(kept[:, 0].sum(1).tolist())
    assert set(sizes) == {0, 1, 2, 3, 4}  # none and all are drawn too
    assert all(abs(count / 20_000 - 1 / 5) < 0.015 for count in sizes.values())
    pairs_of_two = Counter(tuple(row.nonzero().flatten().tolist()) for row in kept[:, 0] if row.sum() == 2)
    assert len(pairs_of_two) == 6
    assert all(abs(count / sizes[2] - 1 / 6) < 0.03 for count in pairs_of_two.values())


def test_heads_can_draw_sets_of_their_own():
    kept = sample("uniform_length(heads=each)")
    assert not torch.equal(kept[:, 0], kept[:, 1])
    assert torch.equal(kept[:, 0].sum(1), kept[:, 1].sum(1))  # of the same size
    for rule in ("inverse_length", "bernoulli(heads=each)"):
        first, second = sample(rule).unbind(1)
        assert abs(np.corrcoef(first.flatten(), second.flatten())[0, 1]) < 0.05
    for rule in ("inverse_length(heads=alike)", "bernoulli"):
        first, second = sample(rule).unbind(1)
        assert torch.equal(first, second)


def test_inverse_length_keeps_one_token_on_average_and_often_none():
    kept = sample("inverse_length", 20_000, length=8)[:, 0]
    assert abs(kept.sum(1).double().mean() - 1) < 0.03
    assert abs((kept.sum(1) == 0).double().mean() - (7 / 8) ** 8) < 0.015


def test_bernoulli_keeps_a_share():
    assert abs(sample("bernoulli(p=0.2)", 10_000).double().mean() - 0.2) < 0.01
    assert sample("bernoulli(p=1)").all()


def test_padding_is_never_kept_and_fixed_tokens_always():
    real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2]).repeat(500, 1)
    fixed = torch.arange(5) < 1
    for rule in ("uniform_length", "inverse_length", "bernoulli"):
        keep = Side(real, 3, fixed).keep(rule_of(rule), generator(1))
        assert keep.shape == (1000, 3, 5)
        assert keep[:, :, 0].all() and not keep[1::2, :, 3:].any()
        assert 0 < keep[1::2, :, 1:3].double().mean() < 1  # not the same for the rest
    sizes = Side(real, 1, fixed).keep(rule_of("uniform_length"), generator(2))[1::2, 0, 1:].sum(1)
    assert set(sizes.tolist()) == {0, 1, 2}  # of its own length


def test_draws_are_a_function_of_seed_and_step():
    side = Side(torch.ones(3, 9, dtype=torch.bool), 2)
    draw = lambda seed, step: drawn(rule_of("uniform_length"), 1.0, [side], seed=seed, step=step)  # noqa: E731
    torch.manual_seed(1)
    first = draw(0, 5).target
    torch.manual_seed(2)
    assert torch.equal(first, draw(0, 5).target)
    assert not torch.equal(first, draw(0, 6).target)
    assert not torch.equal(first, draw(1, 5).target)


def test_coins():
    sides = [Side(torch.ones(1, 6, dtype=torch.bool), 1)] * 2
    rule = rule_of("uniform_length")

    def seen(how, mix=0.5, sides=sides):
        found = (drawn(rule, mix, sides, seed=0, step=step, coins=how) or Keeps() for step in range(400))
        return Counter((keeps.target is not None, keeps.source is not None) for keeps in found)

    apart, one = seen("apart"), seen("one")
    assert len(apart) == 4 and all(abs(count - 100) < 40 for count in apart.values())  # independent
    assert set(one) == {(True, True), (False, False)} and abs(one[True, True] - 200) < 45
    assert seen("apart", 1.0) == {(True, True): 400}
    decoder = seen("apart", 0.5, sides[:1])
    assert set(decoder) == {(True, False), (False, False)} and abs(decoder[True, False] - 200) < 45
    assert drawn(rule_of("none"), 1.0, sides, seed=0, step=0) is None


def test_rules_that_do_not_exist():
    assert set(keep_rules) == {"uniform_length", "inverse_length", "bernoulli", "none"}
    with pytest.raises(UnknownName, match="no keep rule 'uniform'.*Did you mean 'uniform_length'"):
        rule_of("uniform")
    with pytest.raises(InputError, match="p is a number above 0 and at most 1"):
        rule_of("bernoulli(p=2)")
    with pytest.raises(InputError, match="heads is alike or each"):
        rule_of("uniform_length(heads=some)")
    assert str(rule_of("bernoulli(p=0.3)").spec()) == "bernoulli(p=0.3)"


# -- who may look at whom --------------------------------------------------------------------------------------


def test_pairs_follow_the_definition():
    keep = sample("bernoulli(heads=each)", 5, 7, 3)
    for kind in ("self", "decoder", "encoder", "cross"):
        found = pairs(keep, kind, 7)
        for b, h, i, j in np.ndindex(5, 3, 7, 7):
            kept = bool(keep[b, h, j])
            expected = kept if kind == "cross" else kept or i == j
            assert bool(found[b, h, i, j]) == (expected and (kind in ("encoder", "cross") or j <= i))


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
        with attending(hf):
            outside = hf(**inputs, use_cache=False).logits
            target = torch.ones(2, 2, inputs.get("decoder_input_ids", inputs["input_ids"]).shape[1], dtype=torch.bool)
            source = None if family in DECODERS else torch.ones(2, 2, 9, dtype=torch.bool)
            with keeping_only(Keeps(target, source)):
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
    heads = reach_of(hf, family)["self"]
    keep = rule_of("bernoulli(p=0.4)").draw(torch.ones(3, size, dtype=torch.bool), heads, generator(3)).clone()
    if family in ("llama", "mistral"):
        keep[..., 0] = True  # [CLS], which evaluation never removes
    keep[1, :, 1:] = False  # almost nothing
    ids = torch.from_numpy(encoding.ids.copy())[None].expand(3, -1)
    with attending(hf), keeping_only(Keeps(keep)), torch.no_grad():
        told = hf(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits.log_softmax(-1)
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
    encoding = extended(model.encode([Example(TEXT)])[0], [9, 30, 17, 41, 25], model.codec)
    first = model.first_position(encoding)  # of what is written
    length, size = first - 1, len(encoding)
    heads = reach_of(hf, family)
    assert set(heads) == {"encoder", "decoder", "cross"}
    keep = rule_of("bernoulli(p=0.5)").draw(torch.ones(4, size, dtype=torch.bool), 2, generator(4)).clone()
    keep[2, :, :length] = False
    keep[3] = False
    source, target = keep[..., :length], keep[..., length : size - 1]
    ids = torch.from_numpy(encoding.ids.copy())
    inputs = {
        "input_ids": ids[None, :length].expand(4, -1),
        "attention_mask": torch.ones(4, length, dtype=torch.long),
        "decoder_input_ids": ids[None, length : size - 1].expand(4, -1),
    }
    with attending(hf), keeping_only(Keeps(target, source)), torch.no_grad():
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
        layer.encoder_attn.out_proj.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    with attending(hf), keeping_only(Keeps(None, none)):
        logits = hf(**inputs, use_cache=False).logits
        other = hf(**{**inputs, "input_ids": inputs["input_ids"].flip(1)}, use_cache=False).logits
    assert len(seen) == 4 and not any(written.any() for written in seen)
    assert torch.equal(logits, other)
    logits.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in hf.parameters() if p.grad is not None)
    assert hf.model.encoder.layers[0].fc1.weight.grad is None or not hf.model.encoder.layers[0].fc1.weight.grad.any()
    with attending(hf), keeping_only(Keeps(None, ~none)):
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
        with attending(hf), keeping_only(Keeps(keep)), torch.no_grad():
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

    with pytest.raises(Unsupported, match="The attention of closed can't be reached.*use another model"):
        reach_of(Closed(), "closed")
    hf, _ = tiny_hf("gpt2", "causal")
    getattr(hf, "activation_checkpointing_enable", hf.gradient_checkpointing_enable)()  # as transformers 5.23 calls it
    with pytest.raises(Unsupported, match="turn checkpointing off first"), attending(hf):
        pass


def test_the_callers_config_is_what_it_was_even_after_an_error():
    hf, _ = tiny_hf("bart", "seq2seq")
    hf.set_attn_implementation("sdpa")
    with pytest.raises(ZeroDivisionError), attending(hf):
        assert hf.config._attn_implementation != "sdpa"
        raise ZeroDivisionError
    assert {m.config._attn_implementation for m in hf.modules() if hasattr(m, "config")} == {"sdpa"}
    assert not any(hasattr(module, "raison_kind") for module in hf.modules())
