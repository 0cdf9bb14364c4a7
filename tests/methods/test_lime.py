"""LIME against slow, literal code and closed forms."""

from __future__ import annotations

import math
from contextlib import nullcontext

import numpy as np
import pytest
import torch

import raison
from raison.methods.lime import Lime
from raison.models.protocol import TargetSpec
from raison.testing.precision import Float64
from tests.helpers.removed_units import TEXT, WEIGHTS, bag, model_of, questioned, tangled, vectors


@pytest.fixture(autouse=True)
def precise(request):
    real = "registry" in request.keywords  # real models are what they are: float32
    with nullcontext() if real else Float64():
        yield


# -- closed forms --------------------------------------------------------------------------------------------


def test_lime_of_a_linear_function_is_shrunk_by_its_ridge_only():
    text = "a very good film and one lovely bad ending so"
    wanted = np.array([WEIGHTS.get(word, 0.0) for word in text.split()])
    strong, weak = (
        raison.explain(raison.load(bag), text, f"lime(ridge={ridge})") for ridge in (1.0, 1e-9)
    )
    np.testing.assert_allclose(weak.scores, wanted, atol=1e-6)
    assert weak.diagnostics["fit"] > 1 - 1e-12 and 0 < 1 - strong.diagnostics["fit"] < 0.01
    assert (np.abs(strong.scores)[np.abs(wanted) > 1] < np.abs(wanted)[np.abs(wanted) > 1]).all()


# -- oracles -------------------------------------------------------------------------------------------------


def test_lime_is_a_weighted_ridge_regression():
    """Written out: weights of cosine distances, an intercept that is not penalised."""
    model = raison.load(tangled)
    batch, units, worth = questioned(model, "some very good films have a bad end")
    method, size = Lime(samples=80, width=0.4, ridge=0.7), len(units)
    keep = method.draw_samples(size, batch.generator(0))
    ones = np.ones(size)
    matrix, right = np.zeros((size + 1, size + 1)), np.zeros(size + 1)
    for kept in keep:
        z = kept.astype(float)
        length = np.linalg.norm(z) * np.linalg.norm(ones)
        distance = 1 - z @ ones / length if length else 1.0
        weight = math.exp(-(distance**2) / 0.4**2)
        row = np.append(z, 1.0)
        matrix += weight * np.outer(row, row)
        right += weight * row * worth(np.flatnonzero(kept))
    matrix += 0.7 * np.diag([1.0] * size + [0.0])
    expected = np.linalg.solve(matrix, right)
    (found,) = method(model, batch)
    np.testing.assert_allclose(found.scores, expected[:-1], atol=1e-9)
    assert abs(found.parts["intercept"] - expected[-1]) < 1e-9


def test_lime_draws_as_its_text_explainer():
    keep = Lime(samples=20_001).draw_samples(10, np.random.default_rng(0))
    gone = 10 - keep.sum(1)
    assert keep[0].all() and gone[1:].min() == 1 and gone[1:].max() == 10
    shares_of_sizes = np.bincount(gone[1:], minlength=11)[1:] / 20_000
    assert (np.abs(shares_of_sizes - 0.1) < 0.01).all()
    assert (np.abs(keep[1:].mean(0) - 0.45) < 0.015).all()


# -- sampling error ------------------------------------------------------------------------------------------


def test_the_standard_error_of_lime():
    model = raison.load(tangled)
    text = "some very good films have a bad and lovely end"
    found = [raison.explain(model, text, "lime(samples=150)", seed=seed) for seed in range(60)]
    spread = np.std([one.scores for one in found], axis=0, ddof=1)
    stated = np.array([one.parts["standard_error"] for one in found])
    assert 0.7 < math.sqrt((spread**2).mean() / (stated**2).mean()) < 1.3
    assert all(0 < one.diagnostics["fit"] < 1 for one in found)


def test_margins_of_lime_cover_95_percent():
    """Of what other samples of the same number give on average."""
    model = raison.load(tangled)
    text = "some very good films have a bad and lovely end"
    found = [raison.explain(model, text, "lime(samples=40)", seed=seed) for seed in range(300)]
    scores = np.array([one.scores for one in found])
    margins = np.array([one.parts["margin_95"] for one in found])
    assert (np.abs(scores - scores.mean(0)) <= margins).mean() > 0.94


class Ridge:
    """An interpretable model for Captum: ridge regression with a free intercept (its own needs another package)."""

    def __init__(self, penalty):
        self.penalty = penalty

    def fit(self, data):
        x, y, w = (torch.cat(part) for part in zip(*data, strict=True))
        mean = (w[:, None] * x).sum(0) / w.sum()
        centred, rest = x - mean, y - (w * y).sum() / w.sum()
        matrix = (centred * w[:, None]).T @ centred + self.penalty * torch.eye(
            x.shape[1], dtype=x.dtype
        )
        self.coefficients = torch.linalg.solve(matrix, (centred * w[:, None]).T @ rest)
        return {}

    def representation(self):
        return self.coefficients


# -- Captum --------------------------------------------------------------------------------------------------


def test_captum_lime_agrees_on_the_same_sets():
    captum = pytest.importorskip("captum.attr")
    model = model_of("classifier")
    batch, forward, ones = vectors(model, TEXT, TargetSpec(target=1))
    method = Lime(samples=60)
    sets = torch.from_numpy(method.draw_samples(ones.shape[1], batch.generator(0)).astype(float))

    def sets_in_turn(original, **kwargs):
        yield from (row[None] for row in sets)

    def weight(original, perturbed, interpretable, **kwargs):
        distance = 1 - torch.nn.functional.cosine_similarity(original, interpretable)
        return torch.exp(-(distance**2) / 0.25**2)

    lime = captum.LimeBase(
        forward, Ridge(1.0), weight, sets_in_turn, True,
        from_interp_rep_transform=lambda z, original, **kwargs: z, to_interp_rep_transform=None,
    )  # fmt: skip
    theirs = lime.attribute(ones, n_samples=len(sets)).numpy()
    np.testing.assert_allclose(method(model, batch)[0].scores, theirs, atol=1e-9)
