"""Methods that remove units, and the controls, against slow literal code and closed forms."""

from __future__ import annotations

import copy
import json
import math
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
import torch
from scipy import stats

import raison
from raison.core.artifact import Artifact
from raison.core.errors import InputError, UnknownName
from raison.core.registry import methods
from raison.core.text_splitting import split_words
from raison.core.units import group
from raison.methods import shapley
from raison.methods.base import Batch
from raison.methods.idf import SHIPPED, entry
from raison.methods.lime import Lime
from raison.methods.margin import t_quantile
from raison.methods.perturbation import ask, shares
from raison.methods.shapley import KernelShap, ShapleySampling
from raison.models.protocol import Budget, Question, TargetSpec
from raison.studies.idf import fit_idf
from raison.testing import check_method, tiny_model
from raison.testing.precision import Float64

SAMPLERS = ["kernel_shap(samples=90)", "shapley_sampling(permutations=2)", "lime(samples=40)"]
REMOVERS = ["leave_one_out", "occlusion", *SAMPLERS]
TEXT = "The film is a lovely surprise, isn't it?"


@pytest.fixture(autouse=True)
def precise(request):
    real = "registry" in request.keywords  # real models are what they are: float32
    with nullcontext() if real else Float64():
        yield


# -- what is asked -----------------------------------------------------------------------------------------

WEIGHTS = {"good": 2.0, "bad": -3.0, "film": 0.5, "very": 0.25, "lovely": 1.5}


def bag(texts):
    """A linear bag of words: what a word is worth does not depend on the others."""
    return np.array([sum(WEIGHTS.get(word, 0.0) for word in text.split()) for text in texts])


def tangled(texts):
    """Words that act together, with no pattern that a method could profit from."""
    rows = []
    for text in texts:
        there = text.split()
        worth = sum(WEIGHTS.get(word, 0.1) for word in there)
        pairs = sum(math.sin(7 * len(a) + 3 * len(b) + ord(a[0]) * ord(b[-1])) for a, b in combinations(there, 2))
        rows.append(math.tanh(worth / 2) * 3 + 0.3 * pairs)
    return np.array(rows)


def questioned(model, text, level="word", target_spec=None):
    """One text as a batch, and a slow way to ask about a set of its units: one by one."""
    encoding = model.encode([raison.Example(text) if isinstance(text, str) else text])[0]
    encoding, target = model.resolve_targets(encoding, target_spec or TargetSpec())[0]
    units = group(encoding, level, target.free(encoding))

    def worth(chosen) -> float:
        keep = np.array([u < 0 or u in chosen for u in units.of])
        return float(model.score([Question(encoding, target, keep[None])])[0].value.sum())

    return Batch([encoding], [target], [units]), units, worth


def shapley_values(size, worth) -> np.ndarray:
    """The definition: what a unit adds to each set of others, weighed by how often the set comes first."""
    known = {s: worth(s) for k in range(size + 1) for s in combinations(range(size), k)}
    values = np.zeros(size)
    for unit in range(size):
        others = [u for u in range(size) if u != unit]
        for k in range(size):
            weight = math.factorial(k) * math.factorial(size - 1 - k) / math.factorial(size)
            for before in combinations(others, k):
                after = tuple(sorted((*before, unit)))
                values[unit] += weight * (known[after] - known[before])
    return values


KINDS = {
    "classifier": ("bert", "classification"),
    "causal": ("gpt2", "causal"),
    "windowed": ("mistral", "causal"),
    "writer": ("marian", "seq2seq"),
    "tagger": ("modernbert", "tagging"),
    "function": (),
}
loaded = {}


def model_of(kind):
    """A tiny model, loaded once; a copy, whose settings a test may change."""
    if kind not in loaded:
        loaded[kind] = tiny_model(*KINDS[kind]) if KINDS[kind] else raison.load(tangled)
    return copy.copy(loaded[kind])


def first(found):
    return found[0] if isinstance(found, list) else found


# -- closed forms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["leave_one_out", "occlusion(window=1)", "kernel_shap(samples=44)", "kernel_shap",
                                    "kernel_shap(samples=44, paired=False)", "shapley_sampling",
                                    "shapley_sampling(permutations=2)"])  # fmt: skip
def test_words_of_a_linear_function_get_their_weights(method):
    text = "a very good film and one lovely bad ending so"
    found = raison.explain(raison.load(bag), text, method)
    np.testing.assert_allclose(found.scores, [WEIGHTS.get(word, 0.0) for word in text.split()], atol=1e-9)
    if "standard_error" in found.parts:  # nothing is left to chance: every draw agrees
        np.testing.assert_allclose(found.parts["standard_error"], 0, atol=1e-9)


def test_lime_of_a_linear_function_is_shrunk_by_its_ridge_only():
    text = "a very good film and one lovely bad ending so"
    wanted = np.array([WEIGHTS.get(word, 0.0) for word in text.split()])
    strong, weak = (raison.explain(raison.load(bag), text, f"lime(ridge={ridge})") for ridge in (1.0, 1e-9))
    np.testing.assert_allclose(weak.scores, wanted, atol=1e-6)
    assert weak.diagnostics["fit"] > 1 - 1e-12 and 0 < 1 - strong.diagnostics["fit"] < 0.01
    assert (np.abs(strong.scores)[np.abs(wanted) > 1] < np.abs(wanted)[np.abs(wanted) > 1]).all()


# -- oracles -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_exact_shapley_values(kind):
    """Where all sets are asked, both methods give the definition."""
    model = model_of(kind)
    batch, units, worth = questioned(model, "The old town lies low")
    assert 1 < len(units) < 9
    expected = shapley_values(len(units), worth)
    for method in (KernelShap(), ShapleySampling(200)):
        (found,) = method(model, batch)
        np.testing.assert_allclose(found.scores, expected, atol=1e-9)
        assert (found.parts["standard_error"] == 0).all() and found.diagnostics["sampling_error"] == 0
        assert found.diagnostics["evaluations"] == 2 ** len(units)


def test_shapley_sampling_walks_its_orders():
    """The mean over the orders it drew, each also backwards, one prefix after the other."""
    model = raison.load(tangled)
    batch, units, worth = questioned(model, "some very good films have a bad and lovely end", "word")
    method, size = ShapleySampling(3), len(units)
    walk = method.walk(size, batch.generator(0))
    assert walk.ranks is not None
    gains = np.zeros((3, size))
    for number, ranks in enumerate(walk.ranks):
        order = np.argsort(ranks).tolist()
        for way in (order, order[::-1]):
            for place, unit in enumerate(way):
                gains[number, unit] += (worth(way[: place + 1]) - worth(way[:place])) / 2
    (found,) = method(model, batch)
    np.testing.assert_allclose(found.scores, gains.mean(0), atol=1e-9)
    np.testing.assert_allclose(found.parts["standard_error"], gains.std(0, ddof=1) / math.sqrt(3), atol=1e-9)


def test_many_orders_are_asked_about_in_parts(monkeypatch):
    """The same numbers, and never more sets at once than memory is to hold."""
    model = raison.load(tangled)
    batch, units, _ = questioned(model, "some very good films have a bad and lovely end", "word")
    (wanted,) = ShapleySampling(7)(model, batch)
    sizes = []
    monkeypatch.setattr(shapley, "CELLS", 2 * 2 * (len(units) + 1) * len(units))
    monkeypatch.setattr(shapley, "ask", lambda m, b, chosen: sizes.append(len(chosen[0])) or ask(m, b, chosen))
    (found,) = ShapleySampling(7)(model, batch)
    assert sizes == [4 * (len(units) + 1)] * 3 + [2 * (len(units) + 1)]
    np.testing.assert_allclose(found.scores, wanted.scores, atol=1e-12)
    np.testing.assert_allclose(found.parts["standard_error"], wanted.parts["standard_error"], atol=1e-12)
    assert found.diagnostics["value"] == wanted.diagnostics["value"]
    assert found.diagnostics["empty"] == wanted.diagnostics["empty"]


@pytest.mark.parametrize("paired", [True, False])
def test_kernel_shap_is_the_constrained_least_squares_solution(paired):
    """By eliminating the last unit, with a general solver, on the sets that were drawn."""
    model = raison.load(tangled)
    batch, units, worth = questioned(model, "some very good films have a bad and lovely end")
    method, size = KernelShap(60, paired), len(units)
    design = method.design(size, batch.generator(0))
    everything, nothing = worth(range(size)), worth(())
    rows, values = [], []
    for kept, weight in zip(design.keep, design.weight, strict=True):
        z, value = kept.astype(float), worth(np.flatnonzero(kept))
        rows.append(math.sqrt(weight) * (z[:-1] - z[-1]))
        values.append(math.sqrt(weight) * (value - nothing - z[-1] * (everything - nothing)))
    solution = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0]
    expected = [*solution, everything - nothing - solution.sum()]
    (found,) = method(model, batch)
    np.testing.assert_allclose(found.scores, expected, atol=1e-9)


@pytest.mark.parametrize("size", [5, 8, 13, 40])
@pytest.mark.parametrize("paired", [True, False])
def test_sets_of_kernel_shap(size, paired):
    """Whole sizes from the outside in with the kernel's own weights, the rest drawn, nothing too much or too light."""
    samples = 4 * size + 10
    design = KernelShap(samples, paired).design(size, np.random.default_rng(0))
    count = design.keep.sum(1)
    assert count.min() >= 1 and count.max() <= size - 1
    whole = design.keep[: len(design.keep) - design.drawn]
    weight = {k: (size - 1) / (math.comb(size, k) * k * (size - k)) for k in range(1, size)}
    sizes = set(whole.sum(1).tolist())
    assert {1, size - 1} <= sizes and sizes == {k for k in range(1, size) if min(k, size - k) <= len(sizes) / 2 + 0.5}
    for kept, found in zip(whole, design.weight, strict=False):
        assert abs(found - weight[int(kept.sum())]) < 1e-12
    assert len(np.unique(whole, axis=0)) == len(whole) == sum(math.comb(size, k) for k in sizes)
    assert abs(design.weight.sum() - sum(weight[k] * math.comb(size, k) for k in weight)) < 1e-9
    assert len(np.unique(design.keep, axis=0)) <= samples
    if 2**size - 2 <= samples:
        assert design.drawn == 0 and len(design.keep) == 2**size - 2
    else:
        drawn = design.keep[-design.drawn :]
        assert not sizes & set(drawn.sum(1).tolist())
        assert not paired or (drawn[::2] == ~drawn[1::2]).all()
        assert len(np.unique(design.keep, axis=0)) >= 0.95 * samples  # what duplicates save is drawn anew


def test_drawn_sizes_follow_the_kernel():
    design = KernelShap(20_000).design(60, np.random.default_rng(1))
    sizes = np.bincount(design.keep[-design.drawn :].sum(1), minlength=61)
    inner = np.flatnonzero(sizes)
    expected = 1 / (inner * (60 - inner))
    expected *= sizes.sum() / expected.sum()
    assert (np.abs(sizes[inner] - expected) < 5 * np.sqrt(2 * expected)).all()
    assert inner[0] == 2 and inner[-1] == 58  # size 1 is whole
    share = design.keep[-design.drawn :: 2].mean(0)  # every unit is as likely as any other
    assert (np.abs(share - 0.5) < 0.02).all()


def test_lime_is_a_weighted_ridge_regression():
    """Written out: weights of cosine distances, an intercept that is not penalised."""
    model = raison.load(tangled)
    batch, units, worth = questioned(model, "some very good films have a bad end")
    method, size = Lime(samples=80, width=0.4, ridge=0.7), len(units)
    keep = method.draw(size, batch.generator(0))
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
    keep = Lime(samples=20_001).draw(10, np.random.default_rng(0))
    gone = 10 - keep.sum(1)
    assert keep[0].all() and gone[1:].min() == 1 and gone[1:].max() == 10
    shares_of_sizes = np.bincount(gone[1:], minlength=11)[1:] / 20_000
    assert (np.abs(shares_of_sizes - 0.1) < 0.01).all()
    assert (np.abs(keep[1:].mean(0) - 0.45) < 0.015).all()


def test_occlusion_by_loops():
    model = raison.load(tangled)
    batch, units, worth = questioned(model, "some very good films have a bad end")
    everything, size = worth(range(len(units))), len(units)
    for window, stride in ((1, 1), (2, 1), (3, 1), (3, 2), (3, 3), (4, 3), (20, 1)):
        expected = []
        for unit in range(size):
            drops = []
            for start in range(-10 * stride - 60, size):
                covered = range(start, start + min(window, size))  # a longer one is the text
                if start % stride == 0 and unit in covered:
                    drops.append(everything - worth([u for u in range(size) if u not in covered]))
            expected.append(np.mean(drops))
        found = raison.explain(model, batch.encodings[0].texts[0], f"occlusion(window={window}, stride={stride})")
        np.testing.assert_allclose(found.scores, expected, atol=1e-9)


def test_windows_stay_in_their_text():
    """The last words of a question and the first of its context are no neighbours."""
    model = model_of("classifier")
    pair = raison.Example("The old town", "A dull story")
    found = raison.explain(model, pair, "occlusion(window=2)", target=1)
    _, units, worth = questioned(model, pair, target_spec=TargetSpec(target=1))
    assert [span[0] for span in units.spans] == [0, 0, 0, 1, 1, 1]
    everything = worth(range(6))
    drop = {gone: everything - worth(set(range(6)) - set(gone)) for gone in ((2,), (1, 2), (3,), (3, 4))}
    assert abs(found.scores[2] - (drop[2,] + drop[1, 2]) / 2) < 1e-9
    assert abs(found.scores[3] - (drop[3,] + drop[3, 4]) / 2) < 1e-9


# -- sampling error ------------------------------------------------------------------------------------------


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
    assert all(one.diagnostics["sampling_error"] == max(one.parts["standard_error"]) > 0 for one in found)
    assert 0.7 < math.sqrt((errors**2).mean() / (stated**2).mean()) < 1.3
    assert abs(errors.mean()) < 1e-9 and (np.abs(errors.mean(0)) < 5 * errors.std(0) / math.sqrt(60) + 1e-12).all()
    assert (np.abs(errors) < 2 * stated).mean() > 0.85


def test_the_standard_error_of_lime():
    model = raison.load(tangled)
    text = "some very good films have a bad and lovely end"
    found = [raison.explain(model, text, "lime(samples=150)", seed=seed) for seed in range(60)]
    spread = np.std([one.scores for one in found], axis=0, ddof=1)
    stated = np.array([one.parts["standard_error"] for one in found])
    assert 0.7 < math.sqrt((spread**2).mean() / (stated**2).mean()) < 1.3
    assert all(0 < one.diagnostics["fit"] < 1 for one in found)


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


def test_margins_of_lime_cover_95_percent():
    """Of what other samples of the same number give on average."""
    model = raison.load(tangled)
    text = "some very good films have a bad and lovely end"
    found = [raison.explain(model, text, "lime(samples=40)", seed=seed) for seed in range(300)]
    scores = np.array([one.scores for one in found])
    margins = np.array([one.parts["margin_95"] for one in found])
    assert (np.abs(scores - scores.mean(0)) <= margins).mean() > 0.94


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
            np.mean([(raison.explain(model, text, f"{method}({n})", seed=s).scores - exact) ** 2 for s in range(8)])
            for n in (little, much)
        )
        assert many < few / 6  # sixteen times the samples


# -- Captum --------------------------------------------------------------------------------------------------


def vectors(model, text, target_spec=None):
    """What Captum explains: a function of keep-vectors [n u], and the batch that is the same for raison."""
    batch, units, _ = questioned(model, text, target_spec=target_spec)

    def forward(z):
        keep = units.keep(z.detach().numpy() > 0.5)
        scored = model.score([Question(batch.encodings[0], batch.targets[0], keep)])[0]
        return torch.from_numpy(scored.value.sum(-1))

    return batch, forward, torch.ones(1, len(units), dtype=torch.float64)


@pytest.mark.parametrize("kind", ["classifier", "causal"])
def test_captum_agrees_exactly(kind):
    captum = pytest.importorskip("captum.attr")
    model = model_of(kind)
    batch, forward, ones = vectors(model, "The old town lies")
    ablated = captum.FeatureAblation(forward).attribute(ones)[0].numpy()
    np.testing.assert_allclose(methods.build("leave_one_out")(model, batch)[0].scores, ablated, atol=1e-9)
    exact = captum.ShapleyValues(forward).attribute(ones)[0].numpy()  # all orders
    for method in (KernelShap(), ShapleySampling(200)):
        np.testing.assert_allclose(method(model, batch)[0].scores, exact, atol=1e-9)


def test_captum_sampling_agrees_within_the_error():
    captum = pytest.importorskip("captum.attr")
    model = raison.load(tangled)
    batch, forward, ones = vectors(model, "some very good films have a bad and lovely end")
    torch.manual_seed(0)
    theirs = captum.ShapleyValueSampling(forward).attribute(ones, n_samples=40, perturbations_per_eval=11)[0].numpy()
    (ours,) = ShapleySampling(20)(model, batch)
    gap = np.abs(ours.scores - theirs)
    assert gap.max() > 1e-6  # they are two samples, not one
    assert (gap < 5 * 2 * ours.parts["standard_error"].max()).all()  # theirs has no reverses and errs more
    (kernel,) = KernelShap(200)(model, batch)
    assert (np.abs(kernel.scores - theirs) < 5 * 2 * ours.parts["standard_error"].max()).all()


class Ridge:
    """An interpretable model for Captum: ridge regression with a free intercept (its own needs another package)."""

    def __init__(self, penalty):
        self.penalty = penalty

    def fit(self, data):
        x, y, w = (torch.cat(part) for part in zip(*data, strict=True))
        mean = (w[:, None] * x).sum(0) / w.sum()
        centred, rest = x - mean, y - (w * y).sum() / w.sum()
        matrix = (centred * w[:, None]).T @ centred + self.penalty * torch.eye(x.shape[1], dtype=x.dtype)
        self.coefficients = torch.linalg.solve(matrix, (centred * w[:, None]).T @ rest)
        return {}

    def representation(self):
        return self.coefficients


def test_captum_lime_agrees_on_the_same_sets():
    captum = pytest.importorskip("captum.attr")
    model = model_of("classifier")
    batch, forward, ones = vectors(model, TEXT, TargetSpec(target=1))
    method = Lime(samples=60)
    sets = torch.from_numpy(method.draw(ones.shape[1], batch.generator(0)).astype(float))

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


# -- what all of them promise --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["kernel_shap(samples=90)", "shapley_sampling(permutations=2)"])
def test_scores_add_up(kind, method):
    model = model_of(kind)
    found = first(raison.explain(model, "The film is a lovely surprise, and nobody expected it", method))
    gain = found.diagnostics["value"] - found.diagnostics["empty"]
    assert abs(found.scores.sum() - gain) < 1e-9 * max(1, abs(gain))
    whole = first(raison.explain(model, "The film is a lovely surprise, and nobody expected it", "leave_one_out"))
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
        if method.startswith("lime"):  # the only other text is too far away to weigh much against the ridge
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
        level: len(raison.explain(model, text, method, units=level).units) for level in ("token", "word", "sentence")
    }
    assert sizes["token"] > sizes["word"] > sizes["sentence"] == 3
    slots = raison.Example.from_template("Judge {title} by {words} now", title="the film", words="good actors")
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


def test_too_few_samples_are_refused():
    with pytest.raises(InputError, match=r"20 samples are too few to tell 10 units apart: use .*samples=40"):
        raison.explain(raison.load(bag), "some very good films have a bad and lovely end", "kernel_shap(samples=20)")
    assert raison.explain(raison.load(bag), "a good film", "kernel_shap(samples=6)").diagnostics["evaluations"] == 8


def test_other_removals():
    model = model_of("classifier")
    for method in REMOVERS:
        by_mask, by_token = (raison.explain(model, TEXT, method, removal=r) for r in ("mask", "mask_token"))
        deleted = raison.explain(model, TEXT, method)
        np.testing.assert_allclose(by_mask.scores, deleted.scores, atol=1e-9)
        assert np.abs(by_token.scores - deleted.scores).max() > 1e-3 and by_token.removal == "mask_token"


# -- prefixes that are computed once -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["causal", "windowed", "writer"])
@pytest.mark.parametrize("method", [*REMOVERS, "kernel_shap(samples=300)"])
def test_sharing_changes_cost_but_no_score(kind, method):
    model = model_of(kind)
    assert model.shares_prefixes
    texts = [TEXT, "Nobody in town expected it."]
    shared = raison.explain(model, texts, method, units="token")
    model.runner.shares_prefixes = False
    literal = raison.explain(model, texts, method, units="token")
    for one, other in zip(shared, literal, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-9)
        assert one.cost["forwards"] == other.cost["forwards"] and one.cost["tokens"] <= other.cost["tokens"]
        if kind != "writer" and method in ("leave_one_out", "occlusion"):
            assert one.cost["tokens"] < 0.65 * other.cost["tokens"]


def test_what_is_worth_sharing():
    model = model_of("causal")
    encoding = model.encode([raison.Example("The old town lies on a hill above the small river")])[0]
    target = model.resolve_targets(encoding)[0][1]
    size = len(encoding)
    assert shares(Question(encoding, target, ~np.eye(size, dtype=bool)))
    few = np.random.default_rng(0).random((4, size)) < 0.5
    few[:, 0] = [True, False, True, False]
    assert not shares(Question(encoding, target, few))
    assert not shares(Question(encoding, target, np.ones((1, size), bool)))
    literal = [tuple(np.flatnonzero((row | target.given(encoding)) & target.inputs(size))) for row in few]
    nodes = {path[:end] for path in literal for end in range(1, len(path) + 1)}
    assert len(nodes) > 0.75 * sum(map(len, set(literal)))  # what the rule has counted


def test_a_source_that_differs_shares_nothing():
    model = model_of("writer")
    encoding, target = model.resolve_targets(model.encode([raison.Example("The old town lies")])[0])[0]
    source = encoding.segment == 0
    removed = np.array([np.arange(len(encoding)) != t for t in np.flatnonzero(source)])
    assert not shares(Question(encoding, target, removed))


# -- controls ------------------------------------------------------------------------------------------------


def test_uniform_and_position():
    model = model_of("classifier")
    text = "The old town lies"
    assert raison.explain(model, text, "uniform").scores.tolist() == [0.25] * 4
    assert raison.explain(model, text, "position").scores.tolist() == [0.25, 0.5, 0.75, 1]
    found = raison.explain(model, text, "position(favours=start, power=2)")
    assert found.scores.tolist() == [1, 0.5625, 0.25, 0.0625] and found.removal is None


def test_the_shipped_table():
    artifact = Artifact.open(SHIPPED, "idf")
    counts = artifact.data["counts"]
    assert len(counts) == 5000 and SHIPPED.stat().st_size < 100_000
    assert all(
        word == entry(word) == word.lower() and 0 < n <= artifact.data["documents"] for word, n in counts.items()
    )
    found = raison.explain(model_of("classifier"), "The lobster's film is a Zyzzyva", "idf")
    documents = artifact.data["documents"]
    expected = [
        math.log((1 + documents) / (1 + counts.get(w, 0))) for w in ("the", "lobster", "film", "is", "a", "zyzzyva")
    ]
    np.testing.assert_allclose(found.scores, expected)
    assert found.artifacts == {"idf": artifact.content()}
    assert found.scores[0] < found.scores[2] < found.scores[5] == math.log(1 + documents)


def test_idf_of_units_of_every_size():
    model = model_of("classifier")
    text = "A dull storyteller. Good actors"
    of = {word: raison.explain(model, text, "idf").scores[i] for i, word in enumerate(text.replace(".", " .").split())}
    tokens = raison.explain(model, text, "idf", units="token")
    assert len(tokens.units) > len(of)
    for name, span, score in zip(tokens.tokens, tokens.units.spans, tokens.scores, strict=True):
        whole = next(text[a:b] for a, b in split_words(text) if a <= span[1] < b)
        assert name.lower() in whole.lower() and abs(score - of[whole]) < 1e-12  # a part of a word counts as the word
    pair = raison.explain(model, raison.Example(text, "The actors"), "idf")
    assert abs(pair.scores[-1] - of["actors"]) < 1e-12
    sentence = raison.explain(model, text, "idf", units="sentence")
    inside = tokens.scores[
        : len(tokens.scores) - (np.array([s[1] for s in tokens.units.spans]) > text.index(".")).sum()
    ]
    assert abs(sentence.scores[0] - inside.mean()) < 1e-12


def test_a_table_of_ones_own(tmp_path):
    table = fit_idf(["The film", "the FILM’s end", "the end, the end", "  "], corpus="three")
    assert table.data == {"documents": 3, "counts": {"the": 3, "end": 2, "film": 2, ",": 1}}
    assert fit_idf(["the end", "the film", "a film"], largest=2).data["counts"] == {"film": 2, "the": 2}
    table.save(tmp_path / "own.json")
    model = model_of("classifier")
    found = raison.explain(model, "The film ended", f"idf(table={str(tmp_path / 'own.json')!r})")
    np.testing.assert_allclose(found.scores, [0, math.log(4 / 3), math.log(4)], atol=1e-12)
    moved = tmp_path / "moved.json"
    (tmp_path / "own.json").rename(moved)
    again = raison.explain(model, "The film ended", f"idf(table={str(moved)!r})")
    assert again.artifacts == found.artifacts != raison.explain(model, "The film ended", "idf").artifacts
    for texts in ([], ["  "]):
        with pytest.raises(InputError, match="no words to count"):
            fit_idf(texts)
    with pytest.raises(InputError, match="must be a string"):
        fit_idf([3])


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"kind": "heads", "data": {}}', '{"kind": "idf", "data": {}}',
     '{"kind": "idf", "data": {"documents": 0, "counts": {}}}',
     '{"kind": "idf", "data": {"documents": 2, "counts": [1]}}',
     '{"kind": "idf", "data": {"documents": 2, "counts": {"a": 3}}}',
     '{"kind": "idf", "data": {"documents": 2, "counts": {"a": 0.5}}}'],
)  # fmt: skip
def test_a_bad_table_is_one_sentence(tmp_path, content):
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        raison.explain(raison.load(bag), "a good film", f"idf(table={str(path)!r})")
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_a_missing_table_says_how_to_make_one():
    with pytest.raises(InputError, match="raison idf"):
        raison.explain(raison.load(bag), "a good film", "idf(table='nowhere.json')")


def command(*args):
    return subprocess.run([sys.executable, "-m", "raison", *map(str, args)], capture_output=True, text=True, timeout=60)


def test_the_command_fits_a_table(tmp_path):
    (tmp_path / "texts.txt").write_text("The film\n\nthe end\n", encoding="utf-8")
    lines = [{"text": "The film"}, {"text": "the end", "label": 1}]
    (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    tables = []
    for name in ("texts.txt", "texts.jsonl"):
        out = tmp_path / f"{name}.json"
        result = command("idf", "--data", tmp_path / name, "--out", out)
        assert result.returncode == 0 and result.stdout == "3 words of 2 texts\n", result.stderr
        tables.append(Artifact.open(out, "idf"))
    assert tables[0] == tables[1] and tables[0].data["counts"] == {"the": 2, "end": 1, "film": 1}
    assert tables[0].about["corpus"] == "texts.txt"
    result = command("idf", "--data", tmp_path / "texts.txt", "--out", tmp_path / "few.json", "--words", 1)
    assert Artifact.open(tmp_path / "few.json", "idf").data["counts"] == {"the": 2}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("none.txt", None, "no file"), ("empty.txt", "\n \n", "is empty"), ("bad.jsonl", "{\n", "Line 1"),
     ("bad.jsonl", '{"text": "a"}\n{"words": "b"}\n', "Line 2"), ("bad.jsonl", '{"text": 3}\n', "Line 1"),
     ("bad.jsonl", '["a"]\n', "Line 1")],
)  # fmt: skip
def test_what_the_command_refuses(tmp_path, name, content, said):
    from raison.cli.idf import idf

    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said):
        idf(tmp_path / name, tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()
    with pytest.raises(InputError, match="from 1 up"):
        idf(tmp_path / name, tmp_path / "out.json", words=0)
    with pytest.raises(InputError, match="can't be written"):
        idf(tmp_path / name, tmp_path / "nowhere" / "out.json")


def test_names():
    for name in ("occlusion", "kernel_shap", "lime", "shapley_sampling", "uniform", "position", "idf"):
        assert name in methods
    with pytest.raises(UnknownName, match="kernel_shap"):
        methods.build("kernelshap")


# -- real models -----------------------------------------------------------------------------------------------


@pytest.mark.registry
def test_float32_scores_of_a_real_model_are_the_same_by_both_routes(smollm2):
    text = "The capital of France is Paris and the capital of Japan is"
    shared = raison.explain(smollm2, text, units="token")
    smollm2.shares_prefixes = False
    try:
        literal = raison.explain(smollm2, text, units="token")
    finally:
        smollm2.shares_prefixes = True
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


@pytest.mark.full
def test_all_orders_of_five_words_are_the_sets(record_property):
    """Mean over all 120 orders, literally, on every kind of model."""
    for kind in KINDS:
        model = model_of(kind)
        batch, units, worth = questioned(model, "The old town lies")
        size = len(units)
        known = {s: worth(s) for k in range(size + 1) for s in combinations(range(size), k)}
        gains = np.zeros(size)
        orders = list(permutations(range(size)))
        for order in orders:
            for place, unit in enumerate(order):
                before, after = (tuple(sorted(order[:end])) for end in (place, place + 1))
                gains[unit] += (known[after] - known[before]) / len(orders)
        (found,) = KernelShap()(model, batch)
        np.testing.assert_allclose(found.scores, gains, atol=1e-9)
        record_property(kind, f"{np.abs(found.scores - gains).max():.1e}")
