"""Relevance in models of unusual build."""

from __future__ import annotations

import raison
from raison.core.records import Example
from raison.models.load import load
from raison.testing import tiny_hf


def small(kind, tokenizer, **settings):
    """A model of a family that has no place of its own among the tests."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        pad_token_id=0, **settings,
    )  # fmt: skip
    task = "ForCausalLM" if "eos_token_id" in settings else "ForSequenceClassification"
    return getattr(transformers, kind + task)(config).double().eval()


def test_a_branch_that_is_scaled_by_a_number_is_followed():
    """Granite multiplies what attention adds by a setting."""
    _, tokenizer = tiny_hf("gpt2", "causal")
    hf = small("Granite", tokenizer, residual_multiplier=0.3, bos_token_id=0, eos_token_id=0)
    model = load(hf, tokenizer)
    encoding, target = model.resolve_targets(
        model.encode([Example("The old town lies on a hill")])[0]
    )[0]
    ((_, trace),) = model.trace([encoding], [target], want=frozenset({"writes", "readout"}))
    assert len(trace.writes) == 2
    for write in trace.writes:
        assert (write.output - write.own() - write.parts().sum(1)).abs().max() < 1e-12
    assert raison.explain(model, "The old town lies on a hill", "alti").scores.any()
