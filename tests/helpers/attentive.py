"""Small attention classifiers as models."""

from __future__ import annotations

from raison.attention_models.adapter import attention_model
from tests.helpers.small_classifiers import built


def model_of(**settings):
    hf = built(**settings)
    return attention_model(hf, hf.tokenizer, "tiny")
