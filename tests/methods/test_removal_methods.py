"""What all methods that remove units promise."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import raison
from raison.core.errors import InputError
from raison.core.registry import methods
from raison.models.protocol import Budget, TargetSpec
from raison.testing import check_method
from raison.testing.precision import Float64
from tests.helpers.removed_units import (
    KINDS,
    REMOVERS,
    SAMPLERS,
    TEXT,
    WEIGHTS,
    bag,
    model_of,
    questioned,
    shapley_values,
)


@pytest.fixture(autouse=True)
def precise(request):
    real = "registry" in request.keywords  # real models are what they are: float32
    with nullcontext() if real else Float64():
        yield


def first(found):
    return found[0] if isinstance(found, list) else found


# -- closed forms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["leave_one_out", "occlusion(window=1)", "kernel_shap(samples=44)", "kernel_shap",
                                    "kernel_shap(samples=44, paired=False)", "shapley_sampling",
                                    "shapley_sampling(permutations=2)"])  # fmt: skip
def test_words_of_a_linear_function_get_their_weights(method):
    text = "a very good film and one lovely bad ending so"
    found = raison.explain(raison.load(bag), text, method)
    np.testing.assert_allclose(
        found.scores, [WEIGHTS.get(word, 0.0) for word in text.split()], atol=1e-9
    )
    if "standard_error" in found.parts:  # nothing is left to chance: every draw agrees
        np.testing.assert_allclose(found.parts["standard_error"], 0, atol=1e-9)


# -- what all of them promise --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["kernel_shap(samples=90)", "shapley_sampling(permutations=2)"])
def test_scores_add_up(kind, method):
    model = model_of(kind)
    found = first(
        raison.explain(model, "The film is a lovely surprise, and nobody expected it", method)
    )
    gain = found.diagnostics["value"] - found.diagnostics["empty"]
    assert abs(found.scores.sum() - gain) < 1e-9 * max(1, abs(gain))
    whole = first(
        raison.explain(
            model, "The film is a lovely surprise, and nobody expected it", "leave_one_out"
        )
    )
    assert abs(whole.diagnostics["value"] - found.diagnostics["value"]) < 1e-9


@pytest.mark.parametrize("method", ["kernel_shap", "shapley_sampling(permutations=100)"])
def test_contrasts_and_targets_of_several_tokens(method):
    """Shapley values are linear: those of a difference are the difference, those of a text the sum over its tokens."""
    model = model_of("classifier")
    one, other, both = (
        raison.explain(model, "The old town lies low", method, **target_spec)
        for target_spec in (dict(target=0), dict(target=2), dict(target=0, contrast=2))
    )
    assert both.diagnostics["sampling_error"] == 0  # exact, so that seeds do not matter
    np.testing.assert_allclose(both.scores, one.scores - other.scores, atol=1e-9)

    writer = model_of("causal")
    found = raison.explain(writer, "The old town", method, target=" lies on", units="word")
    _, units, worth = questioned(writer, "The old town", target_spec=TargetSpec(target=" lies on"))
    assert len(found.target.ids) > 1 and len(units) == len(found.units) > 1
    np.testing.assert_allclose(found.scores, shapley_values(len(units), worth), atol=1e-9)


@pytest.mark.parametrize("method", SAMPLERS)
def test_seeds(method):
    model = model_of("classifier")
    one, again, other = (raison.explain(model, TEXT, method, seed=seed) for seed in (0, 0, 1))
    assert one == again and np.abs(one.scores - other.scores).max() > 1e-6


@pytest.mark.parametrize("method", REMOVERS)
@pytest.mark.parametrize("kind", ["classifier", "causal", "writer"])
def test_neighbours_and_batches_do_not_matter(method, kind):
    model = model_of(kind)
    texts = ["A dull story with good actors.", TEXT, "Nobody in town expected it."]
    together = raison.explain(model, texts, method)
    model.budget = replace(Budget(), tokens=40)
    for text, found in zip(texts, together, strict=True):
        alone = raison.explain(model, text, method)
        np.testing.assert_allclose(found.scores, alone.scores, atol=1e-9)
        assert found.cost["forwards"] == alone.cost["forwards"]
        assert found.diagnostics["evaluations"] == alone.diagnostics["evaluations"]


@pytest.mark.parametrize("method", REMOVERS)
def test_every_question_of_a_batch_goes_out_together(method, monkeypatch):
    model = model_of("classifier")
    calls = []
    score = model.score
    monkeypatch.setattr(model, "score", lambda q, **how: calls.append(len(q)) or score(q, **how))
    found = raison.explain(model, [TEXT, "A dull story", "Good"], method)
    assert calls == [3]
    for one in found:
        assert {"forwards", "tokens", "cpu_seconds"} <= set(one.cost)
        assert one.cost["forwards"] == one.diagnostics["evaluations"] > 0
        assert one.removal == "delete" and np.isfinite(one.diagnostics["value"])


@pytest.mark.parametrize("method", REMOVERS)
def test_a_text_of_one_unit(method):
    """There is one set besides everything, and it tells all there is."""
    for model in (model_of("classifier"), raison.load(bag)):
        found = raison.explain(model, "good", method)
        drop = raison.explain(model, "good", "leave_one_out").scores
        assert found.scores.shape == (1,) and found.diagnostics["evaluations"] == 2
        if method.startswith(
            "lime"
        ):  # the only other text is too far away to weigh much against the ridge
            assert 0 < found.scores[0] / drop[0] < 1
        else:
            np.testing.assert_allclose(found.scores, drop, atol=1e-9)
            assert found.parts.get("standard_error", [0]) == [0]


def test_targets_without_units():
    """The first token of a text follows nothing that could be removed."""
    model = model_of("causal")
    for method in REMOVERS:
        found = raison.explain(model, "The old", method, target="all", units="token")
        assert len(found[0].units) == 0 and len(found[-1].units) == len(found) - 1
        assert all(len(one.scores) == len(one.units) for one in found)


@pytest.mark.parametrize("method", REMOVERS)
def test_units_of_every_size(method):
    model = model_of("classifier")
    text = "A dull story. Good actors, though! It is late."
    sizes = {
        level: len(raison.explain(model, text, method, units=level).units)
        for level in ("token", "word", "sentence")
    }
    assert sizes["token"] > sizes["word"] > sizes["sentence"] == 3
    slots = raison.Example.from_template(
        "Judge {title} by {words} now", title="the film", words="good actors"
    )
    found = raison.explain(model, slots, method, units="slot")
    assert found.tokens == ("title", "words")
    _, _, worth = questioned(model, slots, "slot")
    if method.startswith(("kernel", "shapley")):
        np.testing.assert_allclose(found.scores, shapley_values(2, worth), atol=1e-9)


@pytest.mark.parametrize(
    "spec",
    ["occlusion(window=0)", "occlusion(stride=0)", "occlusion(window=2, stride=3)", "occlusion(window=1.5)",
     "kernel_shap(samples=1)", "kernel_shap(samples=1.5)", "kernel_shap(paired=3)", "shapley_sampling(permutations=1)",
     "lime(samples=1)", "lime(width=0)", "lime(ridge=0)", "lime(ridge=-1)", "position(favours=middle)",
     "position(power=0)", "idf(table=3)", "lime(kernel=3)"],
)  # fmt: skip
def test_bad_parameters_are_one_sentence(spec):
    with pytest.raises(InputError) as caught:
        methods.build(spec)
    assert str(caught.value).endswith((".", "?")) and "\n" not in str(caught.value)


def test_other_removals():
    model = model_of("classifier")
    for method in REMOVERS:
        by_mask, by_token = (
            raison.explain(model, TEXT, method, removal=r) for r in ("mask", "mask_token")
        )
        deleted = raison.explain(model, TEXT, method)
        np.testing.assert_allclose(by_mask.scores, deleted.scores, atol=1e-9)
        assert (
            np.abs(by_token.scores - deleted.scores).max() > 1e-3
            and by_token.removal == "mask_token"
        )


# -- real models -----------------------------------------------------------------------------------------------


@pytest.mark.registry
def test_float32_scores_of_a_real_model_are_the_same_by_both_routes(smollm2, monkeypatch):
    text = "The capital of France is Paris and the capital of Japan is"
    shared = raison.explain(smollm2, text, units="token")
    with monkeypatch.context() as literally:
        literally.setattr(smollm2.runner, "shares_prefixes", False)
        literal = raison.explain(smollm2, text, units="token")
    np.testing.assert_allclose(shared.scores, literal.scores, atol=2e-4)
    assert shared.cost["tokens"] < 0.65 * literal.cost["tokens"]
    assert max(zip(shared.scores, shared.tokens, strict=True))[1].strip() == "Japan"


@pytest.mark.registry
def test_methods_agree_on_a_clear_case(sentiment):
    text = "the acting is a wonderful surprise"
    best = {raison.explain(sentiment, text, m).tokens[int(np.argmax(raison.explain(sentiment, text, m).scores))]
            for m in ("leave_one_out", "kernel_shap", "shapley_sampling", "lime")}  # fmt: skip
    assert best == {"wonderful"}


@pytest.mark.full
@pytest.mark.parametrize("method", ["occlusion(window=2, stride=2)", "kernel_shap(samples=80, paired=False)",
                                    "position(favours=start, power=2.0)"])  # fmt: skip
def test_contract_with_other_parameters(method):
    check_method(method)
