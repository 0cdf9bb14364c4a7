"""Values that attention carries in models of unusual build."""

from __future__ import annotations

import numpy as np
import pytest

import raison
from raison.core.errors import Unsupported
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


def test_values_that_heads_share_are_zeroed():
    """Falcon's heads read the values of one."""
    _, tokenizer = tiny_hf("gpt2", "causal")
    hf = small("Falcon", tokenizer, alibi=False, multi_query=True, bos_token_id=0, eos_token_id=0)
    model = load(hf, tokenizer)
    text = "The old town lies on a hill"
    found = raison.explain(model, text, "value_zeroing", units="token")
    assert np.isfinite(found.scores).all() and found.scores.any()
    with pytest.raises(Unsupported, match="can't be followed: choose a method"):
        raison.explain(model, text, "alti")


def test_heads_that_meet_in_no_projection_are_told():
    """ConvBERT joins its heads with a convolution."""
    _, tokenizer = tiny_hf("bert", "classification")
    model = load(small("ConvBert", tokenizer, embedding_size=16, head_ratio=1), tokenizer)
    for name in ("alti", "value_weighted_attention"):
        with pytest.raises(Unsupported, match="can't be followed: choose a method"):
            raison.explain(model, "a good film", name)
