"""What a loader refuses, suggests and honours."""

from __future__ import annotations

import numpy as np
import pytest

import raison
from raison.core.errors import InputError, ModelError
from raison.testing import tiny_hf


def test_devices_and_dtypes_are_not_ignored(tmp_path):
    hf, tokenizer = tiny_hf("bert", "classification", double=False)
    with pytest.raises(InputError, match="in memory"):
        raison.load(hf, tokenizer, dtype="float64")
    hf.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="nonsense"):
        raison.load(str(tmp_path), device="nonsense")


def test_models_that_count_positions_their_own_way_have_a_limit():
    from transformers import AutoModelForSequenceClassification, MPNetConfig

    _, tokenizer = tiny_hf("bert", "classification")
    config = MPNetConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=66, pad_token_id=0,
    )  # fmt: skip
    model = raison.load(AutoModelForSequenceClassification.from_config(config).double(), tokenizer)
    assert np.isfinite(
        raison.explain(model, "good " * 90, "gradient_norm", truncate=True).scores
    ).all()


def test_a_model_that_is_nearly_known_is_suggested(monkeypatch):
    from raison.models import hub

    monkeypatch.setattr(hub, "hub_is_reachable", lambda: False)
    with pytest.raises(ModelError, match="no model 'sentimnt' here .* Did you mean 'sentiment'?"):
        raison.load("sentimnt")
