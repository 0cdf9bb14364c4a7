"""Adapters that break a library: one sentence, never a hang."""

from __future__ import annotations

import json

import pytest

from raison.core.errors import ModelError
from raison.models import lora_merge as lora
from raison.testing import tiny_hf


@pytest.fixture
def adapter(tmp_path):
    peft = pytest.importorskip("peft")
    hf, _ = tiny_hf("gpt2", "causal", double=False)
    wrapped = peft.get_peft_model(
        hf, peft.LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True)
    )
    wrapped.save_pretrained(tmp_path / "adapter")
    return tmp_path / "adapter"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"alpha_pattern": {"(?:.|..|...)+(?<!n)": 3}}, "takes too long to fit"),
        ({"alpha_pattern": {"(": 3}}, "which is no pattern"),
        ({"alpha_pattern": {"(" * 900 + ")" * 900: 3, "x" * 2000: 3}}, "more than 1000"),
        (
            {"alpha_pattern": {f"x{number}": 3 for number in range(5000)}},
            "more than the model has modules",
        ),
        ({"lora_alpha": 10**400}, "damaged"),
    ],
    ids=["hungry", "no pattern", "long", "many", "large"],
)
def test_patterns_of_an_adapter_are_bounded(adapter, changes, words, monkeypatch):
    monkeypatch.setattr(lora, "_PATIENCE", 0.01)
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(ModelError, match=words):
        lora.merge_adapter_or_model_error(tiny_hf("gpt2", "causal", double=False)[0], adapter)


def test_matrices_that_do_not_fit_each_other_are_told(adapter):
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(adapter / "adapter_model.safetensors")
    name = next(name for name in tensors if "lora_A" in name)
    save_file({**tensors, name: torch.ones(5, 16)}, adapter / "adapter_model.safetensors")
    with pytest.raises(ModelError, match="can't be merged"):
        lora.merge_adapter_or_model_error(tiny_hf("gpt2", "causal", double=False)[0], adapter)
