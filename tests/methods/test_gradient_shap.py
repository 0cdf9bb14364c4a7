"""Expected gradients against slow, literal code."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from scipy import stats

from raison.methods.baselines import WordEmbeddings
from raison.methods.gradient_shap import degrees_of_expected_gradients, error_of_expected_gradients
from raison.methods.margin import margin_of_95_percent
from raison.testing import tiny_model
from raison.testing.precision import Float64
from tests.oracles.paths import OTHER, TEXT, explained, linear_model


@pytest.fixture(autouse=True)
def precise(request):
    """Float64 all the way, but for real models, which are float32."""
    with nullcontext() if request.node.get_closest_marker("registry") else Float64():
        yield


@pytest.mark.parametrize(
    ("family", "task"), [("bert", "classification"), ("gpt2", "causal"), ("t5", "seq2seq")]
)
def test_expected_gradients_of_one_baseline_are_integrated_gradients(family, task):
    model = tiny_model(family, task)
    exact = explained(model, OTHER, "integrated_gradients(steps=300)")
    found = explained(model, OTHER, "gradient_shap(samples=300, baselines=mask)")
    error = np.array(found.parts["standard_error"])[found.units.of >= 0]
    assert (np.abs(found.scores - exact.scores) <= 4 * error + 1e-9).all()
    assert np.linalg.norm(found.scores - exact.scores) < 0.15 * np.linalg.norm(exact.scores)
    assert (
        np.abs(found.diagnostics["total"] - exact.scores.sum())
        <= 4 * found.diagnostics["total_standard_error"]
    )


def test_the_standard_error_is_one():
    """Over many seeds the scores scatter as the standard error says; stratified, if anything, less."""
    model = tiny_model("bert", "classification")
    scores, errors = [], []
    for seed in range(30):
        found = explained(model, OTHER, "gradient_shap(samples=12)", seed=seed)
        scores.append(found.scores)
        errors.append(np.array(found.parts["standard_error"])[found.units.of >= 0])
    scatter, told = np.std(scores, 0, ddof=1), np.sqrt(np.mean(np.square(errors), 0))
    assert (scatter > 0).all()
    assert 0.5 < np.mean(scatter / told) < 1.3
    mean, _ = np.mean(scores, 0), np.mean(errors, 0)
    fine = explained(model, OTHER, "gradient_shap(samples=400)", seed=99)
    apart = np.abs(fine.scores - mean) / np.sqrt(scatter**2 / 30 + scatter**2 * 12 / 400)
    assert np.sqrt(np.mean(apart**2)) < 2


def test_margins_of_differences_of_neighbours_cover_95_percent():
    """A variance from differences of neighbours has fewer degrees of freedom than one from deviations."""
    for count in (2, 4, 8, 50):
        draws = np.random.default_rng(0).normal(size=(count, 20_000))
        within = np.abs(draws.mean(0)) <= margin_of_95_percent(
            error_of_expected_gradients(draws), degrees_of_expected_gradients(count)
        )
        assert 0.945 < within.mean() < 0.975


@pytest.mark.parametrize(
    ("method", "degrees"),
    [("gradient_shap(samples=12)", 7), ("smooth_grad(samples=5)", 4), ("smooth_grad(noise=0)", 1)],
)
def test_averages_of_gradients_have_margins(method, degrees):
    found = explained(tiny_model("bert", "classification"), OTHER, method)
    wanted = stats.t.ppf(0.975, degrees) * np.array(found.parts["standard_error"])
    np.testing.assert_allclose(found.parts["margin_95"], wanted, rtol=1e-9)


def test_one_noisy_copy_has_no_margin():
    found = explained(tiny_model("bert", "classification"), OTHER, "smooth_grad(samples=1)")
    assert "margin_95" not in found.parts


def test_several_baselines_are_drawn_equally_often():
    model = tiny_model("bert", "classification")
    _, linear = linear_model()
    parts = [
        explained(linear, TEXT, f"gradient_shap(samples=8, baselines={name})").scores
        for name in ("mask", "mean")
    ]
    both = explained(linear, TEXT, "gradient_shap(samples=8, baselines=('mask', 'mean'))")
    np.testing.assert_allclose(
        both.scores, np.mean(parts, 0), atol=1e-12
    )  # exact where G does not depend on α
    assert both.diagnostics["baseline"] == "mask, mean"
    default = explained(model, TEXT, "gradient_shap(samples=3)")
    assert default.diagnostics["baseline"] == "words"
    assert default.method == "gradient_shap(samples=3)"


def test_random_words_are_words():
    model = tiny_model("llama", "causal")
    known = WordEmbeddings(model).known[0]
    assert not set(known) & set(model.codec.special_ids) and known.max() < len(model.tokenizer)
