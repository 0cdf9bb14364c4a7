"""The terms of the loss are the papers'."""

from __future__ import annotations

import pytest
import torch

from raison.rationalizers.config import LossWeights, RationalizerConfig
from raison.rationalizers.losses import (
    coherence,
    kept_shares_for_sparsity,
    prediction_loss,
    rationalizer_loss,
    sparsity_gap,
)
from tests.helpers.small_rationalizers import (
    batch_of,
    built,
    output_of,
)


def test_sparsity_and_coherence_are_the_formulas():
    told = output_of(
        [[0, 1, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0]], [[0, 1, 1, 1, 1, 0], [0, 1, 1, 0, 0, 0]]
    )
    assert float(kept_shares_for_sparsity(told.masks[0], told, 1)[0]) == pytest.approx(3 / 6)
    assert float(
        sparsity_gap(
            told, RationalizerConfig(blocks=1, pruning=1, full_text="none", sparsity=(0.5,))
        )
    ) == pytest.approx(0)
    assert float(
        sparsity_gap(
            told, RationalizerConfig(blocks=1, pruning=1, full_text="none", sparsity=(0.2,))
        )
    ) == pytest.approx(0.3)
    assert float(coherence(told.masks[0], told.real)) == pytest.approx((0 + 1 + 0 + 1) / 4)
    padded = output_of([[0, 1, 1, 0, 0, 0, 0, 0]], [[0, 1, 1, 1, 1, 0, 0, 0]])
    plain = output_of([[0, 1, 1, 0, 0]], [[0, 1, 1, 1, 1]])
    assert coherence(padded.masks[0], padded.real) == coherence(plain.masks[0], plain.real)
    for same in (0.0, 1.0):
        assert float(coherence(torch.full((1, 5), same), torch.ones(1, 5, dtype=torch.bool))) == 0
    sides = output_of([[1, 1, 0, 1]], [[1, 1, 1, 1]], side=torch.tensor([[0, 0, 1, 1]]))
    assert [float(s) for s in kept_shares_for_sparsity(sides.masks[0], sides, 2)] == [1.0, 0.5]
    config = RationalizerConfig(blocks=1, pruning=1, full_text="none", sparsity=(0.9, 0.3))
    assert float(sparsity_gap(sides, config)) == pytest.approx(0.1 + 0.2)


def test_the_loss_is_the_papers():
    """λ_cls CE + λ_full CE_full + λ_D (CE − CE_full) with 1, 2, 1 (methods.md 2.2)."""
    model, tokenizer = built("bert", full_text="predictor")
    model.train()
    torch.manual_seed(0)
    with torch.no_grad():
        told = model(**batch_of(tokenizer))
    labels = torch.tensor([0, 1, 1])
    short, full = prediction_loss(told.logits, labels), prediction_loss(told.full_logits, labels)
    literal = short + 2 * full + 1 * (short - full)
    ours = rationalizer_loss(told, labels, model.settings, LossWeights(sparsity=0, coherence=0))
    assert float(ours) == pytest.approx(float(literal), rel=1e-9)
    more = rationalizer_loss(told, labels, model.settings, LossWeights(sparsity=3, coherence=0.5))
    extra = 3 * sparsity_gap(told, model.settings) + 0.5 * sum(
        coherence(m, told.real) for m in told.masks
    )
    assert float(more - ours) == pytest.approx(float(extra), rel=1e-9)


def test_a2r_and_human_terms():
    model, tokenizer = built("bert", predictor="apart", soft_predictor=True, full_text="none")
    model.train()
    inputs = batch_of(tokenizer)
    with torch.no_grad():
        told = model(**inputs)
    labels = torch.tensor([0, 1, 1])
    assert told.soft_logits is not None and told.full_logits is None
    one, other = told.logits.softmax(-1), told.soft_logits.softmax(-1)
    middle = (one + other) / 2
    jsd = (
        (one * (one / middle).log()).sum(-1) + (other * (other / middle).log()).sum(-1)
    ).mean() / 2
    found = rationalizer_loss(
        told, labels, model.settings, LossWeights(sparsity=0, coherence=0, soft_predictor=1)
    )
    expected = (
        2 * prediction_loss(told.logits, labels)
        + 2 * prediction_loss(told.soft_logits, labels)
        + jsd
    )
    assert float(found) == pytest.approx(float(expected), rel=1e-6)
    gold = torch.zeros_like(told.real)
    gold[:, 2] = True
    known = torch.tensor([True, False, True])
    human = (
        rationalizer_loss(
            told,
            labels,
            model.settings,
            LossWeights(sparsity=0, coherence=0, human=1),
            gold=gold,
            known=known,
        )
        - found
    )
    inside = told.real & known[:, None]
    probabilities = torch.sigmoid(told.margins[-1])
    literal = -torch.where(gold, probabilities, 1 - probabilities).log()[inside].mean()
    assert float(human) == pytest.approx(float(literal), rel=1e-6)
