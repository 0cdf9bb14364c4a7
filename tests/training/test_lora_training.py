"""Training an adapter alone."""

from __future__ import annotations

import json

import pytest
import torch

from raison.core.records import Example
from raison.models.load import load
from raison.models.lora_merge import merge_adapter
from raison.testing import tiny_hf
from raison.training.language_model_rows import language_model_blocks
from raison.training.train_compatibility import train_compatibility
from raison.training.word_dropout_attention import word_dropout_attention
from tests.helpers.training import SMALL, setup_of


def test_lora_trains_the_adapter_alone_and_merges_without_peft(prose, tmp_path):
    pytest.importorskip("peft")
    for family in ("gpt2", "llama"):
        hf, tokenizer = tiny_hf(family, "causal", double=False)
        model = load(hf, tokenizer)
        before = {name: weight.clone() for name, weight in hf.state_dict().items()}
        implementation = hf.config._attn_implementation
        out = tmp_path / family
        report = train_compatibility(
            model, prose, out=out, lora=3, lr=1e-2, **{**SMALL, "steps": 12, "length": 32}
        )
        assert hf.config._attn_implementation == implementation
        assert all(torch.equal(before[name], weight) for name, weight in hf.state_dict().items())
        names = {"training.json", "adapter_model.safetensors", "adapter_config.json"}
        assert {p.name for p in out.iterdir()} == names
        config = json.loads((out / "adapter_config.json").read_text())
        wanted = {
            "gpt2": {"c_attn", "c_proj", "c_fc"},
            "llama": {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"},
        }
        assert set(config["target_modules"]) == wanted[family] and config["r"] == 3
        assert (
            str(tmp_path)
            not in (out / "adapter_config.json").read_text() + (out / "training.json").read_text()
        )
        assert report == json.loads((out / "training.json").read_text())
        assert report["after"]["perplexity"] < report["before"]["perplexity"]
        fresh, _ = tiny_hf(family, "causal", double=False)
        merged = load(merge_adapter(fresh, out), tokenizer)
        task, _ = setup_of(merged, length=32)
        material = language_model_blocks(
            model, [Example(prose.read_text(encoding="utf-8"))], length=32, held=0.05, batch=4
        )
        with word_dropout_attention(fresh):
            again = task.measure(material.held)
        assert again == pytest.approx(report["after"], rel=1e-4)


def test_the_adapter_of_a_folder_is_opened_with_it_again(prose, tmp_path):
    pytest.importorskip("peft")
    hf, tokenizer = tiny_hf("llama", "causal", double=False)
    hf.save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    train_compatibility(
        str(tmp_path / "base"), prose, out=tmp_path / "adapter", lora=2, lr=1e-2, **SMALL
    )
    expected = merge_adapter(hf, tmp_path / "adapter")
    found = load(tmp_path / "adapter")
    ids = torch.tensor([[1, 5, 9, 2]])
    torch.testing.assert_close(found.hf(input_ids=ids).logits, expected(input_ids=ids).logits)


def test_half_precision_adapters_are_measured_as_written(prose, tmp_path):
    pytest.importorskip("peft")
    hf, tokenizer = tiny_hf("llama", "causal", double=False)
    report = train_compatibility(
        load(hf, tokenizer), prose, out=tmp_path / "h", lora=2, lr=1e-2, half=True, **SMALL
    )
    from safetensors.torch import load_file

    tensors = load_file(tmp_path / "h" / "adapter_model.safetensors")
    assert {t.dtype for t in tensors.values()} == {torch.float16}
    assert report["bytes"] == (tmp_path / "h" / "adapter_model.safetensors").stat().st_size
