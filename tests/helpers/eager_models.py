"""Separate eager models with the weights of tiny ones."""

from __future__ import annotations

from raison.testing import FAMILIES, tiny_hf

TEXT = "The film is a lovely surprise, isn't it?"


ENCODERS = [f for f, tasks in FAMILIES.items() if "qa" in tasks]


DECODERS = [f for f, tasks in FAMILIES.items() if "causal" in tasks]


WRITERS = [f for f, tasks in FAMILIES.items() if "seq2seq" in tasks]


def eager(family, task):
    """A separate eager model with the same weights, and its tokenizer."""
    hf, tokenizer = tiny_hf(family, task)
    hf.set_attn_implementation("eager")
    return hf, tokenizer
