"""From scores to weights: projections, exact zeros, gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import raison
from raison.attention_models.config import ClassifierConfig
from raison.attention_models.normalizers import normalizer_of
from raison.core.errors import InputError
from raison.training.seeds import seeded_generator


def projected(scores: np.ndarray) -> np.ndarray:
    """The nearest point of the simplex, by bisection on the threshold."""
    low, high = scores.min() - 1, scores.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(scores - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(scores - (low + high) / 2, 0)


numbers = st.lists(st.floats(-5, 5), min_size=1, max_size=9)


@settings(max_examples=60, deadline=None)
@given(numbers, st.floats(-4, 0.9))
def test_sparse_weights_are_projections(values, lam):
    scores = torch.tensor(values, dtype=torch.float64)
    real = torch.ones_like(scores, dtype=torch.bool)
    found = normalizer_of("sparsemax")(scores, real).numpy()
    np.testing.assert_allclose(found, projected(np.array(values)), atol=1e-9)
    general = normalizer_of(f"sparsegen(lam={lam})")(scores, real).numpy()
    np.testing.assert_allclose(general, projected(np.array(values) / (1 - lam)), atol=1e-8)
    assert general.sum() == pytest.approx(1)


def test_low_scores_and_narrow_numbers_keep_their_weights():
    scores, real = torch.tensor([[-20.0, -21.0, 5.0]]), torch.tensor([[True, True, False]])
    assert normalizer_of("sparsegen(lam=0.99999999)")(scores, real).tolist() == [[1.0, 0.0, 0.0]]
    for spec in ("softmax", "sparsemax", "sparsegen(lam=0.5)", "entmax"):
        narrow, wide = (
            normalizer_of(spec)(scores.to(kind), real) for kind in (torch.float16, torch.float32)
        )
        assert narrow.dtype == torch.float16
        torch.testing.assert_close(narrow.float(), wide, atol=1e-3, rtol=0)


def test_a_larger_lambda_attends_to_fewer():
    scores = torch.randn(50, 20, dtype=torch.float64, generator=seeded_generator(3))
    real = torch.ones_like(scores, dtype=torch.bool)
    sizes = [
        (normalizer_of(f"sparsegen(lam={lam})")(scores, real) > 0).sum(-1)
        for lam in (-100, -3, -0.3, 0, 0.6, 0.99)
    ]
    for fewer, more in zip(sizes[1:], sizes[:-1], strict=True):
        assert (fewer <= more).all()
    assert (normalizer_of("sparsegen(lam=0.9999)")(scores, real).max(-1).values > 0.999).all()
    flat = normalizer_of("sparsegen(lam=-10000)")(scores, real)
    assert (flat - 1 / 20).abs().max() < 1e-3
    zero = normalizer_of("sparsegen")(scores, real)
    assert torch.equal(zero, normalizer_of("sparsemax")(scores, real))


@pytest.mark.parametrize(
    "spec",
    [
        "softmax",
        "sparsemax",
        "sparsegen(lam=-100)",
        "entmax",
        "entmax(alpha=1.3)",
        "entmax(alpha=2)",
    ],
)
def test_what_is_not_there_gets_nothing(spec):
    normalizer = normalizer_of(spec)
    scores = torch.randn(4, 7, dtype=torch.float64, generator=seeded_generator(5))
    real = torch.tensor([[1, 1, 0, 1, 0, 1, 1], [1] * 7, [0, 0, 0, 1, 0, 0, 0], [0] * 7]).bool()
    found = normalizer(scores, real)
    assert (found[~real] == 0).all() and found[3].sum() == 0
    torch.testing.assert_close(found[:3].sum(-1), torch.ones(3, dtype=torch.float64))
    alone = normalizer(scores[:1, real[0]], torch.ones(1, 5, dtype=torch.bool))
    torch.testing.assert_close(found[:1, real[0]], alone)
    shifted = normalizer(scores + 3, real)
    torch.testing.assert_close(found, shifted)
    torch.autograd.gradcheck(
        lambda a: normalizer(a, real[:2]), scores[:2].clone().requires_grad_(), atol=1e-4
    )
    assert str(normalizer_of(str(normalizer.spec())).spec()) == str(normalizer.spec())


def test_parameters_that_can_not_be():
    with pytest.raises(InputError, match="λ of sparsegen is a number below 1"):
        normalizer_of("sparsegen(lam=1)")
    with pytest.raises(InputError, match="alpha of entmax"):
        normalizer_of("entmax(alpha=0.5)")
    with pytest.raises(raison.core.errors.UnknownName, match="Did you mean 'sparsemax'"):
        normalizer_of("sparsmax")
    with pytest.raises(InputError, match="even width"):
        ClassifierConfig(width=7)
    with pytest.raises(InputError, match="3 heads can't share a width of 8"):
        ClassifierConfig(width=8, encoder="transformer", heads=3)
