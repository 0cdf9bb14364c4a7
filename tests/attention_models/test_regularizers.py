"""Losses that keep hidden states near their words."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raison.attention_models import regularizers
from raison.attention_models.regularizers import corrupted_words, mlm_loss, tying_loss
from raison.attention_models.vocabulary import SPECIAL
from raison.training.seeds import seeded_generator
from tests.helpers.small_classifiers import built


def test_tying_is_the_mean_squared_distance_of_real_tokens():
    model = built()
    batch = model.tokenizer(
        ["a lovely film", "it is very very dull and loud"], padding=True, return_tensors="pt"
    )
    told = model(batch["input_ids"], attention_mask=batch["attention_mask"])
    apart = [
        float((told.states[b, t] - told.embeddings[b, t]).square().sum())
        for b, t in torch.nonzero(told.real).tolist()
    ]
    assert len(apart) == 10 and float(tying_loss(told)) == pytest.approx(np.mean(apart))
    told.states = told.embeddings
    assert float(tying_loss(told)) == 0


def test_mlm_asks_about_real_words_and_tells_them_by_the_table():
    ids = torch.tensor([[2, 7, 8, 9, 10, 3, 0, 0]] * 500)
    real = ids > 4
    changed, chosen = corrupted_words(ids, real, 30, 0.15, seeded_generator(1))
    assert not (chosen & ~real).any() and 0.13 < chosen.sum() / real.sum() < 0.17
    assert torch.equal(changed[~chosen], ids[~chosen])
    mask = (changed[chosen] == SPECIAL.index("[MASK]")).float().mean()
    same = (changed[chosen] == ids[chosen]).float().mean()
    assert (
        0.74 < mask < 0.86
        and 0.05 < same < 0.17
        and changed.min() == 0
        and (changed[chosen] >= 4).all()
    )
    model = built()
    batch = torch.tensor(model.tokenizer(["it is very very dull and loud"])["input_ids"])
    there = torch.ones_like(batch, dtype=torch.bool)
    random = seeded_generator(4)
    found = mlm_loss(model, batch, there, 0.5, random)
    moved, asked = corrupted_words(
        batch, (batch > 4), model.config.vocab_size, 0.5, seeded_generator(4)
    )
    states = model(moved).states[asked]
    told = torch.log_softmax(states @ model.words.weight.T, -1)
    wanted = -told[torch.arange(len(states)), batch[asked]].mean()
    torch.testing.assert_close(found, wanted)
    assert float(mlm_loss(model, batch, there, 1e-9, seeded_generator(4))) == 0


@pytest.mark.parametrize("cached", [1, 500, 1 << 20])
def test_a_loss_told_a_few_rows_at_a_time_is_the_cross_entropy(cached, monkeypatch):
    monkeypatch.setattr(regularizers, "CACHED_SCORES", cached)
    random = seeded_generator(1)
    table, states = (
        torch.randn(90, 7, generator=random).double(),
        9 * torch.randn(23, 7, generator=random).double(),
    )
    wanted = torch.randint(90, (23,), generator=random)
    found, literal = (states.clone().requires_grad_() for _ in range(2))
    loss = regularizers.WordCrossEntropy.apply(found, table, wanted)
    expected = torch.nn.functional.cross_entropy(literal @ table.T, wanted)
    (3 * loss).backward()
    (3 * expected).backward()
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found.grad, literal.grad, rtol=1e-10, atol=1e-12)
