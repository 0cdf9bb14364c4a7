"""Small attention classifiers as models."""

from __future__ import annotations

from raison.attention_models.adapter import adapted
from tests.test_attention_classifier import built


def model_of(**design):
    hf = built(**design)
    return adapted(hf, hf.tokenizer, "tiny")
