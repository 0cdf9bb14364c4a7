"""Integrated gradients against slow, literal code."""

from __future__ import annotations

import gzip
from contextlib import nullcontext

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import InputError
from raison.core.registry import methods
from raison.models.load import load
from raison.testing import tiny_hf, tiny_model
from raison.testing.precision import Float64
from tests.oracles.paths import OTHER, TASKS, TEXT, Literal, explained, linear_model, token_scores

QUESTION = ("Where does it begin?", "The river begins in the hills above the town.")


@pytest.fixture(autouse=True)
def precise(request):
    """Float64 all the way, but for real models, which are float32."""
    with nullcontext() if request.node.get_closest_marker("registry") else Float64():
        yield


CASES = [
    ("bert", "classification", TEXT, {"target": 1}),
    ("bert", "classification", (TEXT, OTHER), {"target": 0, "contrast": 2}),
    ("albert", "classification", TEXT, {}),
    ("deberta", "classification", TEXT, {}),
    ("llama", "classification", TEXT, {}),
    ("modernbert", "tagging", OTHER, {}),
    ("distilbert", "qa", QUESTION, {}),
    ("gpt2", "causal", TEXT, {}),
    ("gemma", "causal", TEXT, {"target": 5}),
    ("qwen", "causal", "The old town", {"target": "lies on a hill"}),
    ("t5", "seq2seq", OTHER, {}),
    ("bart", "seq2seq", OTHER, {"target": 2}),
    ("marian", "seq2seq", OTHER, {}),
]


# -- the literal oracle: plain transformers, hooks of its own -------------------------------------------------


@pytest.mark.parametrize(("family", "task", "text", "how"), CASES)
def test_midpoints_one_by_one(family, task, text, how):
    """Every place by itself on the raw model; the baseline keeps what may not be removed."""
    model, literal = tiny_model(family, task), Literal(family, task)
    found = explained(model, text, "integrated_gradients(steps=7)", **how)
    found = found[0] if isinstance(found, list) else found
    encoding, target = found.encoding, found.target
    mask = literal.tokenizer.mask_token_id
    absent = lambda table: table(torch.tensor(mask)).detach()  # noqa: E731
    free = target.free(encoding)
    places = (np.arange(7) + 0.5) / 7
    scores, value, start = literal.integrated(encoding, target, absent, free, places)
    scale = np.abs(scores).max()
    assert scale > 1e-3 and free.any()
    np.testing.assert_allclose(token_scores(found), scores, atol=1e-8 * scale)
    assert not token_scores(found)[~free].any()
    told = found.diagnostics
    assert (told["baseline"], told["points"]) == ("mask", 7)
    assert told["value"] == pytest.approx(value, abs=1e-8) and told[
        "baseline_value"
    ] == pytest.approx(start, abs=1e-8)
    assert told["completeness_error"] == pytest.approx(value - start - scores.sum(), abs=1e-7)
    difference = max(abs(value - start), np.abs(scores).sum() / 100)
    assert told["completeness_gap"] == pytest.approx(
        abs(value - start - scores.sum()) / difference, rel=1e-4, abs=1e-9
    )


@pytest.mark.parametrize(("family", "task"), [("gpt2", "causal"), ("bert", "classification")])
def test_the_released_quadrature(family, task):
    """P0: baseline zero, every token moves, α = i/N for i = 0..N, the mean of N + 1 gradients."""
    model, literal = tiny_model(family, task), Literal(family, task)
    spec = "integrated_gradients(steps=20, rule=reference, baseline=zero, moved=all)"
    found = explained(model, TEXT, spec)
    moved = found.target.scope(len(found.encoding))
    nothing = lambda table: torch.zeros(table.embedding_dim, dtype=torch.float64)  # noqa: E731
    scores, *_ = literal.integrated(
        found.encoding, found.target, nothing, moved, np.arange(21) / 20
    )
    np.testing.assert_allclose(token_scores(found), scores, atol=1e-9 * np.abs(scores).max())
    assert token_scores(found)[-1] != 0  # P0 moves the last token as well
    assert found.diagnostics["points"] == 21


def test_captum_agrees_on_integrated_gradients():
    captum = pytest.importorskip("captum.attr")
    model = tiny_model("bert", "classification")
    hf, tokenizer = tiny_hf("bert", "classification")
    found = explained(model, TEXT, "integrated_gradients(steps=20)", target=1)
    ids = torch.tensor(found.encoding.ids)[None]
    baseline = torch.where(torch.tensor(found.encoding.fixed)[None], ids, tokenizer.mask_token_id)
    layer = captum.LayerIntegratedGradients(
        lambda i: hf(input_ids=i).logits, hf.bert.embeddings.word_embeddings
    )
    expected, delta = layer.attribute(
        ids,
        baselines=baseline,
        target=1,
        n_steps=20,
        method="riemann_middle",
        return_convergence_delta=True,
    )
    expected = expected.sum(-1)[0].detach().numpy()
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(token_scores(found), expected, atol=1e-6)
    assert found.diagnostics["completeness_error"] == pytest.approx(-float(delta), abs=1e-6)


def test_captum_agrees_on_smoothgrad_without_noise_and_on_expected_gradients():
    """GradientShap with a single baseline: the mean of twenty of its runs lies within both standard errors of ours."""
    captum = pytest.importorskip("captum.attr")
    model = tiny_model("bert", "classification")
    hf, tokenizer = tiny_hf("bert", "classification")
    found = explained(model, OTHER, "gradient_shap(samples=60, baselines=mask)", target=1)
    embed = hf.get_input_embeddings()
    ids = torch.tensor(found.encoding.ids)[None]
    absent = torch.where(torch.tensor(found.encoding.fixed)[None], ids, tokenizer.mask_token_id)
    torch.manual_seed(0)
    np.random.seed(0)  # captum draws its points on the line from numpy's global generator
    shap = captum.GradientShap(lambda e: hf(inputs_embeds=e).logits)
    full, none = embed(ids).detach(), embed(absent).detach()
    runs = [
        shap.attribute(full, none, n_samples=60, target=1).sum(-1)[0].numpy() for _ in range(20)
    ]
    free = ~found.encoding.fixed
    expected, theirs = np.mean(runs, 0)[free], np.std(runs, 0, ddof=1)[free] / np.sqrt(len(runs))
    error = np.hypot(np.array(found.parts["standard_error"])[free], theirs)
    apart = np.abs(token_scores(found)[free] - expected)
    assert (apart <= 4 * error).all()
    assert error.max() < 0.1 * np.abs(expected).max()


# -- properties ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "task"), TASKS)
def test_scores_add_up(family, task):
    """Midpoints get there at last, and adaptive ends within its tolerance or says that it does not."""
    model = tiny_model(family, task)
    fine = explained(model, OTHER, "integrated_gradients(steps=400)")
    total = fine.diagnostics["value"] - fine.diagnostics["baseline_value"]
    assert abs(fine.scores.sum() - total) <= 1e-2 * abs(
        total
    )  # random weights are rough, ReLU has kinks
    found = explained(model, OTHER)
    told = found.diagnostics
    assert told["completeness_gap"] <= 0.01 and "notes" not in told
    assert np.linalg.norm(found.scores - fine.scores) <= 0.01 * np.linalg.norm(fine.scores)
    assert told["points"] == found.cost["forwards"] < 300


def test_a_hundred_midpoints_are_complete_on_a_toy_gpt2():
    """The reference quadrature is off by a share of 1/N, midpoints by far less (methods of P0, 1.8)."""
    model = tiny_model("gpt2", "causal")
    middle, both = (
        explained(model, TEXT, f"integrated_gradients(steps=100, rule={rule})")
        for rule in ("midpoint", "reference")
    )
    assert middle.diagnostics["completeness_gap"] < 1e-3 < both.diagnostics["completeness_gap"]


@pytest.mark.parametrize(
    "method",
    ["integrated_gradients(steps=1)", "integrated_gradients", "gradient_shap(baselines=mask)"],
)
def test_a_linear_model_needs_one_step(method):
    hf, model = linear_model()
    found = explained(model, TEXT, method, target=1)
    table = hf.bert.embeddings.word_embeddings.weight
    change = table[torch.tensor(found.encoding.ids)] - table[model.codec.mask_id]
    expected = (change @ hf.classifier.weight[1] / len(found.encoding)).detach().numpy()
    expected[found.encoding.fixed] = 0
    np.testing.assert_allclose(token_scores(found), expected, atol=1e-12)
    if "shap" in method:
        assert found.diagnostics["standard_error"] < 1e-12
    else:
        assert found.diagnostics["completeness_gap"] < 1e-10
        assert found.diagnostics["points"] == (9 if method == "integrated_gradients" else 1)


def test_an_irrelevant_word_gets_nothing():
    """Sensitivity and its converse: only what the model reads has a score."""
    hf, model = linear_model()
    encoding = model.encode([raison.Example(TEXT)])[0]
    dead = int(encoding.ids[3])
    with torch.no_grad():  # one word gets the embedding of absence: it changes nothing
        hf.bert.embeddings.word_embeddings.weight[dead] = hf.bert.embeddings.word_embeddings.weight[
            model.codec.mask_id
        ]
    found = explained(model, TEXT)
    assert (token_scores(found)[found.encoding.ids == dead] == 0).all() and found.scores.any()


def test_adaptive_scores_do_not_depend_on_neighbours():
    model = tiny_model("llama", "causal")
    texts = [TEXT, OTHER, "Nobody in town expected it.", "The old town"]
    together = explained(model, texts)
    for text, found in zip(texts, together, strict=True):
        alone = explained(model, text)
        np.testing.assert_allclose(found.scores, alone.scores, atol=1e-10)
        assert found.diagnostics["points"] == alone.diagnostics["points"]
    again = explained(model, texts)
    assert all((a.scores == b.scores).all() for a, b in zip(together, again, strict=True))


def test_every_target_has_its_own_path():
    """Tokens behind a target and the row that it is read from stay where they are."""
    model = tiny_model("gpt2", "causal")
    found = explained(
        model, "The old town lies on a hill", "integrated_gradients(steps=5)", target="all"
    )
    for one in found:
        free = one.target.free(one.encoding)
        assert not token_scores(one)[~free].any()
        if free.any():
            alone = explained(
                model,
                "The old town lies on a hill",
                "integrated_gradients(steps=5)",
                target=one.target.positions[0],
            )
            np.testing.assert_allclose(alone.scores, one.scores, atol=1e-10)


# -- what a user may get wrong ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("integrated_gradients(steps=0)", "steps is a whole number from 1 up, not 0."),
        ("integrated_gradients(steps=2.5)", "steps is a whole number from 1 up, not 2.5."),
        (
            "integrated_gradients(baseline=maen)",
            "There is no baseline 'maen'. Did you mean 'mean'?",
        ),
        ("integrated_gradients(baseline='text: ')", "The text of the baseline is empty"),
        (
            "integrated_gradients(rule=simpson, steps=3)",
            "rule is one of midpoint, reference, not 'simpson'.",
        ),
        ("integrated_gradients(rule=reference)", "The rule 'reference' needs a number of steps"),
        (
            "integrated_gradients(tolerance=0)",
            "tolerance is a number above 0 and at most 1, not 0.",
        ),
        ("integrated_gradients(most=3)", "most is a whole number from 9 up, not 3."),
        ("integrated_gradients(moved=some)", "moved is one of free, all, not 'some'."),
        ("smooth_grad(samples=0)", "samples is a whole number from 1 up, not 0."),
        ("smooth_grad(noise=-1)", "noise is a number from 0 up, not -1."),
        (
            "smooth_grad(of=attention)",
            "of is one of gradient_norm, input_x_gradient, not 'attention'.",
        ),
        ("gradient_shap(samples=1)", "samples is a whole number from 2 up, not 1."),
        ("gradient_shap(baselines=())", "baselines names at least one baseline"),
        ("gradient_shap(baselines=('mask', 'wrods'))", "There is no baseline 'wrods'."),
        (
            "gradient_shap(samples=2, baselines=('mask', 'pad', 'mean'))",
            "3 baselines need at least as many samples, not 2.",
        ),
    ],
)
def test_bad_parameters(spec, sentence):
    with pytest.raises(InputError) as caught:
        methods.build(spec)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def sentences(data_dir, count):
    with gzip.open(data_dir / "sst2" / "dev.tsv.gz", "rt", encoding="utf-8") as file:
        return [line.split("\t")[0] for line in file][:count]


# -- real models -------------------------------------------------------------------------------------------------------


@pytest.mark.registry
def test_adaptive_on_a_real_classifier(sentiment):
    texts = ["a wonderful surprise .", "the jokes are stale ."]
    found = raison.explain(sentiment, texts, "integrated_gradients")
    fine = raison.explain(sentiment, texts, "integrated_gradients(steps=100)")
    for one, other in zip(found, fine, strict=True):
        assert one.diagnostics["baseline"] == "mask" and one.diagnostics["completeness_gap"] <= 0.01
        assert one.diagnostics["points"] < 45
        assert np.linalg.norm(one.scores - other.scores) <= 0.01 * np.linalg.norm(other.scores)


@pytest.mark.full
@pytest.mark.registry
def test_adaptive_on_a_hundred_sentences(sentiment, data_dir, record_property):
    texts = sentences(data_dir, 100)
    found = raison.explain(sentiment, texts, "integrated_gradients")
    fine = raison.explain(sentiment, texts, "integrated_gradients(steps=500)")
    apart = [
        np.linalg.norm(a.scores - b.scores) / np.linalg.norm(b.scores)
        for a, b in zip(found, fine, strict=True)
    ]
    totals = [a.diagnostics["value"] - a.diagnostics["baseline_value"] for a in found]
    gaps = [
        abs(a.diagnostics["completeness_error"] / total)
        for a, total in zip(found, totals, strict=True)
    ]
    record_property("gaps, mean and largest", f"{np.mean(gaps):.4f}, {max(gaps):.4f}")
    record_property("from 500 steps, largest", f"{max(apart):.4f}")
    record_property("points, mean", f"{np.mean([a.diagnostics['points'] for a in found]):.1f}")
    assert max(gaps) < 0.01 and np.mean(gaps) <= 0.003 and max(apart) < 0.01


def test_a_baseline_at_which_the_gradient_is_not_finite_is_refused():
    hf, tokenizer = tiny_hf("llama", "causal")
    for module in hf.modules():
        if hasattr(module, "variance_epsilon"):
            module.variance_epsilon = 0.0  # an RMS norm of zeros is then 0 / 0
    with pytest.raises(
        InputError, match="not finite on the way from the baseline 'zero'.*steps=50"
    ):
        raison.explain(load(hf, tokenizer), "the film is", "integrated_gradients(baseline=zero)")
    found = raison.explain(
        load(hf, tokenizer), "the film is", "integrated_gradients(baseline=zero, steps=5)"
    )
    assert np.isfinite(found.scores).all()
