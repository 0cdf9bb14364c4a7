"""Margins: standard errors times quantiles of Student's t."""

from __future__ import annotations

import math
from contextlib import nullcontext

import numpy as np
import pytest
from scipy import stats

import raison
from raison.methods.margin import t_quantile
from raison.testing.precision import Float64
from tests.helpers.removed_units import tangled


@pytest.fixture(autouse=True)
def precise(request):
    real = "registry" in request.keywords  # real models are what they are: float32
    with nullcontext() if real else Float64():
        yield


@pytest.mark.parametrize("method", ["kernel_shap(samples=60)", "kernel_shap(samples=60, paired=False)",
                                    "shapley_sampling(permutations=16)"])  # fmt: skip
def test_the_standard_error_is_the_error(method):
    """Over many seeds the squared error is what the standard error says, within a factor."""
    model = raison.load(tangled)
    text = "some very good films have a bad and lovely end"
    exact = raison.explain(model, text, "kernel_shap(samples=2000)")
    assert exact.diagnostics["sampling_error"] == 0
    found = [raison.explain(model, text, method, seed=seed) for seed in range(60)]
    errors = np.array([one.scores - exact.scores for one in found])
    stated = np.array([one.parts["standard_error"] for one in found])
    assert all(
        one.diagnostics["sampling_error"] == max(one.parts["standard_error"]) > 0 for one in found
    )
    assert 0.7 < math.sqrt((errors**2).mean() / (stated**2).mean()) < 1.3
    assert (
        abs(errors.mean()) < 1e-9
        and (np.abs(errors.mean(0)) < 5 * errors.std(0) / math.sqrt(60) + 1e-12).all()
    )
    assert (np.abs(errors) < 2 * stated).mean() > 0.85


@pytest.mark.parametrize("method", [
    "shapley_sampling(permutations=8)", "shapley_sampling(permutations=16)", "kernel_shap(samples=40)",
    "kernel_shap(samples=40, paired=False)",
])  # fmt: skip
def test_margins_of_few_draws_cover_95_percent(method):
    """Over many seeds the exact values lie inside the margins as often as they say; 1.96 standard errors do not."""
    words_of_game = "some very good films have a bad and lovely end".split()
    worth = np.random.default_rng(0).normal(size=2 ** len(words_of_game))  # of every set of words

    def random_game(texts):
        there = np.array([[word in text.split() for word in words_of_game] for text in texts])
        return worth[there @ (1 << np.arange(len(words_of_game)))]

    model, text = raison.load(random_game), " ".join(words_of_game)
    exact = raison.explain(model, text, "kernel_shap(samples=2000)")
    found = [raison.explain(model, text, method, seed=seed) for seed in range(400)]
    errors = np.abs([one.scores - exact.scores for one in found])
    margins = np.array([one.parts["margin_95"] for one in found])
    stated = np.array([one.parts["standard_error"] for one in found])
    assert (errors <= margins).mean() > 0.935
    assert (errors <= 1.96 * stated).mean() < (errors <= margins).mean() - 0.005


def test_margins_are_standard_errors_times_students_t():
    model = raison.load(tangled)
    text = "some very good films have a bad and lovely end"
    for orders in (2, 8, 16):
        found = raison.explain(model, text, f"shapley_sampling(permutations={orders})")
        wanted = stats.t.ppf(0.975, orders - 1) * np.array(found.parts["standard_error"])
        np.testing.assert_allclose(found.parts["margin_95"], wanted, rtol=1e-9)
    exact = raison.explain(model, text, "kernel_shap(samples=2000)")
    assert set(exact.parts["margin_95"]) == {0.0}  # nothing was drawn


def test_quantiles_of_students_t_are_scipys():
    for degrees in (*range(1, 40), 99, 100, 4999, 50_000):
        for probability in (0.6, 0.9, 0.975, 0.995, 0.9999):
            wanted = stats.t.ppf(probability, degrees)
            assert t_quantile(probability, degrees) == pytest.approx(wanted, rel=1e-9)


def test_more_samples_err_less():
    model = raison.load(tangled)
    text = "some very good films have a bad and lovely end so they say"
    exact = raison.explain(model, text, "kernel_shap(samples=5000)").scores
    for method, little, much in (("kernel_shap", "samples=60", "samples=960"),
                                 ("shapley_sampling", "permutations=3", "permutations=48")):  # fmt: skip
        few, many = (
            np.mean(
                [
                    (raison.explain(model, text, f"{method}({n})", seed=s).scores - exact) ** 2
                    for s in range(8)
                ]
            )
            for n in (little, much)
        )
        assert many < few / 6  # sixteen times the samples
