"""The farthest attention of one text that leaves its answer as it is, beside grids of attentions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raison.metrics.attention import (
    jensen_shannon,
    total_variation,
)
from raison.studies.audit.adversarial_attention import (
    STARTS,
    TextLogits,
    largest_divergences,
    search_divergences,
)
from raison.studies.audit.state_importance import real_tokens_with_states
from raison.studies.audit.word_pairs import (
    CLOSE,
    farthest_corner,
    farthest_on_grid,
    softmax_of_answer,
)
from raison.training.seeds import seeded_generator
from tests.helpers.attentive import model_of
from tests.helpers.small_classifiers import reviews


def farthest(own, words, step=0.02):
    """The largest JSD of all attentions on a grid that give the same answer."""
    n = len(own)
    axes = np.meshgrid(*[np.arange(0, 1 + 1e-9, step)] * (n - 1), indexing="ij")
    some = np.stack([*axes, 1 - sum(axes)], -1).reshape(-1, n)
    some = some[some[:, -1] > -1e-9].clip(0)
    same = total_variation(
        softmax_of_answer(some @ words),
        np.broadcast_to(softmax_of_answer(own @ words), (len(some), len(words[0]))),
    )
    kept = some[same <= CLOSE]
    return max([0.0, *jensen_shannon(kept, np.broadcast_to(own, kept.shape))]) if len(kept) else 0.0


@pytest.mark.parametrize("number", range(12))
def test_two_classes_have_their_farthest_attention_in_a_corner(number):
    """No grid finds anything farther, and a fine one comes near."""
    rng = np.random.default_rng(number)
    own = rng.dirichlet([0.7] * 3)
    words = rng.normal(size=(3, 2)) * rng.choice([0.3, 2.0, 6.0])
    exact, found = farthest_corner(own, words[:, 1] - words[:, 0]), farthest(own, words, 0.005)
    assert found - 1e-9 <= exact <= found + 0.03
    four, more = rng.dirichlet([0.7] * 4), rng.normal(size=(4, 2)) * 2
    assert farthest_corner(four, more[:, 1] - more[:, 0]) >= farthest(four, more) - 1e-9


def test_corners_that_are_known():
    one = np.array([1.0, 0, 0, 0])
    assert farthest_corner(one, np.zeros(4)) == pytest.approx(np.log(2))  # all words say the same
    # a word that decides everything and has all attention: of another only as much as leaves the answer alone
    assert 0 < farthest_corner(one, np.array([60.0, -60, -60, -60])) < 0.3
    assert farthest_corner(np.ones(1), np.zeros(1)) == 0


def test_more_classes_are_searched():
    rng = np.random.default_rng(3)
    for number in range(4):
        own, words = rng.dirichlet([0.7] * 3), rng.normal(size=(3, 3))
        starts = torch.randn(STARTS, 3, generator=seeded_generator(number), dtype=torch.float64)
        found = max(
            farthest_on_grid(own, words),
            search_divergences([TextLogits(own, words)], [starts], 300)[0],
        )
        best = farthest(own, words, 0.01)
        assert best - 0.08 <= found <= best + 0.02
    # the same words twice in a class that nobody says: two classes again
    own, words = rng.dirichlet([0.7] * 5), rng.normal(size=(5, 2))
    three = np.concatenate([words, np.full((5, 1), -50.0)], 1)
    exact = farthest_corner(own, words[:, 1] - words[:, 0])
    assert exact - 0.05 <= farthest_on_grid(own, three) <= exact
    # words that all say the same: the search goes as far as it can
    start = torch.randn(STARTS, 4, generator=seeded_generator(3), dtype=torch.float64)
    assert (
        search_divergences([TextLogits(np.array([1.0, 0, 0, 0]), np.zeros((4, 3)))], [start], 1200)[
            0
        ]
        > 0.6
    )


@pytest.mark.parametrize("labels", [("no", "yes"), ("no", "so", "yes")])
def test_a_text_is_searched_as_if_it_were_alone(labels):
    model = model_of(labels=labels)
    encodings = model.encode(reviews(6))
    real = [real_tokens_with_states(encoding, model) for encoding in encodings]
    found, most = largest_divergences(model, encodings, real, steps=60)
    assert (
        ((found >= 0) & (found <= most + 1e-9)).all()
        and (most <= np.log(2)).all()
        and (found > 0.1).any()
    )
    for k in range(6):
        alone, _ = largest_divergences(model, encodings[k : k + 1], real[k : k + 1], steps=60)
        assert alone[0] == pytest.approx(found[k], abs=1e-6)
