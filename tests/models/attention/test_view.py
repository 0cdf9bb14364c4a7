"""A view follows its model: weights, settings, adapters, hooks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import ModelError
from raison.models.load import load
from raison.testing import tiny_hf

TEXT = "The old town lies on a hill"


def test_a_view_follows_adapters_settings_and_weights():
    """The weights of a peft model do not move when another adapter is chosen; its settings change."""
    peft = pytest.importorskip("peft")
    hf, tokenizer = tiny_hf("gpt2", "causal")
    options = dict(r=2, target_modules=["c_attn"], init_lora_weights=False, fan_in_fan_out=True)
    torch.manual_seed(0)
    adapted = peft.get_peft_model(hf, peft.LoraConfig(**options)).double().eval()
    adapted.add_adapter("b", peft.LoraConfig(**options))
    adapted.double()
    model = raison.load(adapted, tokenizer)
    first = raison.explain(model, TEXT, target=-1).scores
    adapted.set_adapter("b")
    second = raison.explain(model, TEXT, target=-1).scores
    np.testing.assert_allclose(
        second, raison.explain(raison.load(adapted, tokenizer), TEXT, target=-1).scores
    )
    assert np.abs(first - second).max() > 1e-6
    with adapted.disable_adapter():
        plain = raison.explain(model, TEXT, target=-1).scores
    assert np.abs(second - plain).max() > 1e-6


def test_weights_changed_in_place_count_at_once():
    hf, tokenizer = tiny_hf("bert", "classification")
    model = raison.load(hf, tokenizer)
    before = raison.explain(model, TEXT, target=0).scores
    with torch.no_grad():
        hf.classifier.weight.mul_(2.0)
    np.testing.assert_allclose(raison.explain(model, TEXT, target=0).scores, 2 * before, rtol=1e-6)


def test_a_hook_that_is_added_later_is_seen():
    hf, tokenizer = tiny_hf("bert", "classification")
    model = load(hf, tokenizer)
    before = raison.explain(model, "The film is lovely", "gradient_norm").scores
    handle = hf.bert.encoder.layer[0].register_forward_hook(
        lambda module, args, out: (
            out / 2 if isinstance(out, torch.Tensor) else (out[0] / 2, *out[1:])
        )
    )
    after = raison.explain(model, "The film is lovely", "gradient_norm").scores
    fresh = raison.explain(load(hf, tokenizer), "The film is lovely", "gradient_norm").scores
    handle.remove()
    assert abs(after - before).max() > 1e-6
    np.testing.assert_array_equal(after, fresh)


def test_a_view_that_answers_differently_from_the_users_model_is_refused():
    """Falcon's eager attention adds its ALiBi twice, the fused one that users run adds it once."""
    import torch
    from transformers import FalconConfig, FalconForCausalLM

    _, tokenizer = tiny_hf("gpt2", "causal")
    for alibi in (False, True):
        torch.manual_seed(0)
        config = FalconConfig(
            vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, alibi=alibi,
            bos_token_id=0, eos_token_id=0,
        )  # fmt: skip
        hf = FalconForCausalLM(config).double().eval()
        for weight in hf.parameters():
            if weight.dim() > 1:
                torch.nn.init.normal_(weight, std=0.4)
        if alibi:
            with pytest.raises(ModelError, match="does not give the model's own answers.*eager"):
                load(hf, tokenizer)
            # what the sentence says: now eager attention is the model's own
            eager = FalconForCausalLM._from_config(config, attn_implementation="eager")
            assert load(eager.double().eval(), tokenizer).removals
        else:
            assert load(hf, tokenizer).removals
