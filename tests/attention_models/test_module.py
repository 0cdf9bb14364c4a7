"""What a classifier computes: the mean of what each word says, whatever is padded."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import raison
from raison.attention_models.train import train_classifier
from raison.metrics.attention import normalised_entropy
from tests.helpers.small_classifiers import CONFIGS, SMALL, built, reviews


@pytest.mark.parametrize("config", CONFIGS)
def test_the_answer_is_the_mean_of_what_each_word_says(config):
    model = built(**config)
    ids = torch.tensor(model.tokenizer(["a lovely film and a dull ending"])["input_ids"])
    told = model(ids)
    alone = model.decoder(told.read)  # [b t c]
    torch.testing.assert_close(
        (told.weights[..., None] * alone).sum(1), told.logits, atol=1e-10, rtol=0
    )
    assert told.weights[0, 0] == told.weights[0, -1] == 0 and told.weights.sum() == pytest.approx(1)
    moved = torch.zeros_like(told.weights)
    moved[0, 2] = 1
    torch.testing.assert_close(model(ids, weights=moved).logits, alone[:, 2])


@pytest.mark.parametrize("config", CONFIGS)
def test_padding_changes_nothing(config):
    model = built(**config)
    short = torch.tensor(model.tokenizer(["a lovely film"])["input_ids"])
    alone = model(short)
    for side in ("left", "right"):
        pad = torch.zeros(1, 3, dtype=torch.long)
        wide = torch.cat([pad, short] if side == "left" else [short, pad], 1)
        there = wide != 0
        positions = (there.cumsum(1) - 1).clamp(min=0)
        told = model(wide, attention_mask=there, position_ids=positions)
        torch.testing.assert_close(told.logits, alone.logits)
        torch.testing.assert_close(told.weights[there], alone.weights[0])
        assert (told.weights[~there] == 0).all()


def test_dot_attention_needs_a_wide_query(tmp_path):
    """P3 App. C: with torch's own initialisation attention stays uniform, with N(0, 1) it does not.

    Of a transformer, whose states have a root mean square of 1; those of a BiLSTM are small, and its scores, too.
    """
    entropies = []
    for query_std in (None, 1.0):
        config = {"width": 50, "attention": "dot", "query_std": query_std, "encoder": "transformer"}
        train_classifier(
            reviews(300),
            out=tmp_path / str(query_std),
            config=config,
            training={**SMALL, "epochs": 3, "lr": 1e-3},
        )
        model = raison.load(tmp_path / str(query_std))
        rows = [own[1:-1] for own in model.own(model.encode(reviews(60, seed=4)))]
        entropies.append(np.mean([normalised_entropy(row) for row in rows]))
    assert entropies[0] > 0.99 and entropies[1] < 0.9
