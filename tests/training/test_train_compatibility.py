"""Training for partial contexts on tiny models."""

from __future__ import annotations

import math

import pytest
import torch

from raison.core.errors import InputError, UnknownName
from raison.core.records import Example
from raison.models.load import load
from raison.testing import tiny_hf
from raison.training.compatibility_settings import CompatibilityTraining
from raison.training.feed import BatchFeed
from raison.training.language_model_rows import language_model_blocks
from raison.training.train_compatibility import copy_for_compatibility, train_compatibility
from raison.training.training_folder import TrainingNotSaved
from raison.training.word_dropout import DropoutSide, draw_keeps, keep_rule_of
from tests.helpers.training import PAIRS, SMALL, literal

SIDE = DropoutSide(torch.ones(4, 23, dtype=torch.bool), 2)


def test_the_control_is_plain_training(prose, tmp_path):
    """And what is trained with dropout is something else."""
    hf, tokenizer = tiny_hf("gpt2", "causal", double=False)
    model = load(hf, tokenizer)
    before = [p.detach().clone() for p in hf.parameters()]
    control = train_compatibility(
        model, prose, out=tmp_path / "control", keep="none", lr=1e-3, **SMALL
    )
    other = train_compatibility(model, prose, out=tmp_path / "other", lr=1e-3, mix=1.0, **SMALL)
    assert all(
        torch.equal(old, new) for old, new in zip(before, hf.parameters(), strict=True)
    )  # the user's own
    material = language_model_blocks(
        model, [Example(prose.read_text(encoding="utf-8"))], length=24, held=0.05, batch=4
    )
    expected = literal(hf, BatchFeed(material.train, 4, 0), None, 4, 0, 1e-3)
    assert control["losses"] == pytest.approx(expected, abs=2e-5)
    assert other["losses"] != control["losses"]
    saved = load(str(tmp_path / "control")).hf  # a plain folder
    for name, weight in saved.state_dict().items():
        torch.testing.assert_close(weight, hf.state_dict()[name], rtol=0, atol=1e-5)


def test_frozen_weights_are_trained_in_full_and_computed_positions_are_not(tmp_path):
    """peft's merge_and_unload leaves weights frozen; Marian's positions are a formula."""
    hf, tokenizer = tiny_hf("marian", "seq2seq", double=False)
    hf.requires_grad_(False)
    model = load(hf, tokenizer)
    report = train_compatibility(model, PAIRS, out=tmp_path / "m", lr=1e-3, keep="inverse_length", mix=1.0, **{
        **SMALL, "length": 60, "steps": 8,
    })  # fmt: skip
    after = load(str(tmp_path / "m")).hf.state_dict()
    moved = {
        name for name, weight in hf.state_dict().items() if not torch.equal(weight, after[name])
    }
    assert (
        "model.decoder.layers.0.encoder_attn.q_proj.weight" in moved
        and "model.shared.weight" in moved
    )
    learned = {
        name
        for name, p in copy_for_compatibility(model, CompatibilityTraining()).named_parameters()
        if p.requires_grad
    }
    assert learned == {n for n, _ in hf.named_parameters() if "embed_positions" not in n}
    assert report["counts"]["pairs held out"] == 2 and report["own_targets"] is False
    assert all(math.isfinite(loss) for loss in report["losses"])


def test_both_trainings_see_the_same_tokens_and_learn(prose, tmp_path):
    """The control differs in the masks alone; how much dropout helps is measured on real models."""
    hf, tokenizer = tiny_hf("gpt2", "causal", double=False)
    found = {}
    for keep in ("uniform_length", "none"):
        settings = {**SMALL, "steps": 20, "lr": 1e-2, "held": 0.2, "subset": 4}
        found[keep] = train_compatibility(
            load(hf, tokenizer), prose, out=tmp_path / keep, keep=keep, **settings
        )
    dropout, control = found["uniform_length"], found["none"]
    assert dropout["before"] == control["before"] and dropout["losses"] != control["losses"]
    for name in ("perplexity", "perplexity of 4 tokens"):
        assert max(dropout["after"][name], control["after"][name]) < 0.8 * control["before"][name]
    assert dropout["tokens trained on"] == control["tokens trained on"] == 20 * 4 * 24
    assert dropout["counts"] == control["counts"]
    first = next(
        k
        for k in range(20)
        if draw_keeps(keep_rule_of("uniform_length"), 0.5, [SIDE], seed=0, step=k) is not None
    )
    assert (
        dropout["losses"][:first] == control["losses"][:first]
    )  # until the first coin says so, both are the same
    assert dropout["losses"][first] != control["losses"][first]


def test_bfloat16_keeps_weights_in_float32(prose, tmp_path):
    hf, tokenizer = tiny_hf("gpt2", "causal", double=False)
    report = train_compatibility(
        load(hf, tokenizer), prose, out=tmp_path / "b", bfloat16=True, lr=1e-3, **SMALL
    )
    assert next(load(str(tmp_path / "b")).hf.parameters()).dtype == torch.float32
    exact = train_compatibility(load(hf, tokenizer), prose, out=tmp_path / "f", lr=1e-3, **SMALL)
    assert report["losses"] != exact["losses"] and report["losses"] == pytest.approx(
        exact["losses"], rel=0.05
    )


def test_a_result_that_can_not_be_written_is_written_by_the_next_call(prose, tmp_path, monkeypatch):
    hf, tokenizer = tiny_hf("gpt2", "causal", double=False)
    model = load(hf, tokenizer)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(type(hf), "save_pretrained", full)
        with pytest.raises(
            TrainingNotSaved,
            match="No space left on device.*: make room, and the same command writes it",
        ):
            train_compatibility(model, prose, out=tmp_path / "o", **SMALL)
    assert (tmp_path / "o" / "checkpoint.pt").exists() and not (
        tmp_path / "o" / "training.json"
    ).exists()
    report = train_compatibility(model, prose, out=tmp_path / "o", **SMALL)
    assert len(report["losses"]) == 4 and not (tmp_path / "o" / "checkpoint.pt").exists()
    with pytest.raises(InputError, match="has a finished model: delete it, or choose another out"):
        train_compatibility(model, prose, out=tmp_path / "o", **SMALL)


def test_bad_input_is_told_in_one_sentence(tmp_path, prose):
    gpt = load(*tiny_hf("gpt2", "causal", double=False))
    marian = load(*tiny_hf("marian", "seq2seq", double=False))
    out = tmp_path / "out"
    with pytest.raises(
        InputError,
        match="gives 0 blocks of 24 tokens to train on, less than a batch of 40: give more text",
    ):
        train_compatibility(gpt, ["A short text about a film."], out=out, **{**SMALL, "batch": 40})
    with pytest.raises(
        InputError, match="reads at most 64 tokens: give a length up to that, not 128"
    ):
        train_compatibility(gpt, prose, out=out)
    with pytest.raises(InputError, match="does not write text \\(classification\\)"):
        train_compatibility(load(*tiny_hf("bert", "classification")), prose, out=out)
    with pytest.raises(
        UnknownName, match="no keep rule 'uniform_lenth'. Did you mean 'uniform_length'"
    ):
        train_compatibility(gpt, prose, out=out, keep="uniform_lenth")
    with pytest.raises(InputError, match="mix is a number above 0 and at most 1"):
        train_compatibility(gpt, prose, out=out, mix=1.5)
    with pytest.raises(InputError, match="own_targets is for encoder-decoders"):
        train_compatibility(gpt, prose, out=out, own_targets=True, **SMALL)
    with pytest.raises(InputError, match="tokens bounds the text of a language model"):
        train_compatibility(marian, PAIRS, out=out, tokens=100, **{**SMALL, "length": 60})
    with pytest.raises(InputError, match="unexpected keyword argument 'rank'"):
        train_compatibility(gpt, prose, out=out, rank=3)
    with pytest.raises(InputError, match="less than a batch of 4"):
        train_compatibility(marian, PAIRS[:3], out=out, **{**SMALL, "length": 60})
    strange = [(source, "你好世界，这是一句话") for source, _ in PAIRS]
    with pytest.raises(InputError, match="unknown to the tokenizer of .*own_targets=True"):
        train_compatibility(marian, strange, out=out, **{**SMALL, "length": 60})
    with pytest.raises(InputError, match="no file"):
        train_compatibility(gpt, tmp_path / "no.txt", out=out, **SMALL)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can't be written .*choose another out"):
        train_compatibility(gpt, prose, out=tmp_path / "file" / "in", **SMALL)
