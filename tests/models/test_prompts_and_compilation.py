"""Wrapped models: learned prompts are refused, a compiled model is opened."""

from __future__ import annotations

import copy

import pytest

import raison
from raison.core.errors import Unsupported
from raison.testing import tiny_hf


def test_learned_prompts_are_refused():
    """They live in peft's wrapper: the bare model would be explained in their place."""
    peft = pytest.importorskip("peft")
    hf, tokenizer = tiny_hf("gpt2", "causal")
    options = {"task_type": "CAUSAL_LM", "num_virtual_tokens": 3}
    for config in (peft.PromptTuningConfig(**options), peft.PrefixTuningConfig(**options)):
        with pytest.raises(Unsupported, match="learned tokens in front of a text"):
            raison.load(peft.get_peft_model(copy.deepcopy(hf).float(), config), tokenizer)


def test_a_compiled_model_is_the_model_inside():
    import torch

    hf, tokenizer = tiny_hf("bert", "classification")
    assert raison.load(torch.compile(hf), tokenizer).hf is hf
