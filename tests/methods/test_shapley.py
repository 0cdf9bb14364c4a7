"""Shapley values, sampled and by regression, against slow, literal code and closed forms."""

from __future__ import annotations

import math
from contextlib import nullcontext
from itertools import combinations, permutations

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import InputError
from raison.core.registry import methods
from raison.methods import shapley_sampling
from raison.methods.kept_sets import evaluate_sets
from raison.methods.kernel_shap import KernelShap
from raison.methods.shapley_sampling import ShapleySampling
from raison.testing.precision import Float64
from tests.helpers.removed_units import (
    KINDS,
    bag,
    model_of,
    questioned,
    shapley_values,
    tangled,
    vectors,
)


@pytest.fixture(autouse=True)
def precise(request):
    real = "registry" in request.keywords  # real models are what they are: float32
    with nullcontext() if real else Float64():
        yield


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
        assert (found.parts["standard_error"] == 0).all() and found.diagnostics[
            "sampling_error"
        ] == 0
        assert found.diagnostics["evaluations"] == 2 ** len(units)


def test_shapley_sampling_walks_its_orders():
    """The mean over the orders it drew, each also backwards, one prefix after the other."""
    model = raison.load(tangled)
    batch, units, worth = questioned(
        model, "some very good films have a bad and lovely end", "word"
    )
    method, size = ShapleySampling(3), len(units)
    walk = method.draw_orders(size, batch.generator(0))
    assert walk.ranks is not None
    gains = np.zeros((3, size))
    for number, ranks in enumerate(walk.ranks):
        order = np.argsort(ranks).tolist()
        for way in (order, order[::-1]):
            for place, unit in enumerate(way):
                gains[number, unit] += (worth(way[: place + 1]) - worth(way[:place])) / 2
    (found,) = method(model, batch)
    np.testing.assert_allclose(found.scores, gains.mean(0), atol=1e-9)
    np.testing.assert_allclose(
        found.parts["standard_error"], gains.std(0, ddof=1) / math.sqrt(3), atol=1e-9
    )


def test_many_orders_are_asked_about_in_parts(monkeypatch):
    """The same numbers, and never more sets at once than memory is to hold."""
    model = raison.load(tangled)
    batch, units, _ = questioned(model, "some very good films have a bad and lovely end", "word")
    (wanted,) = ShapleySampling(7)(model, batch)
    sizes = []

    def watched(model, batch, sets):
        sizes.append(len(sets[0]))
        return evaluate_sets(model, batch, sets)

    monkeypatch.setattr(shapley_sampling, "CELLS", 2 * 2 * (len(units) + 1) * len(units))
    monkeypatch.setattr(shapley_sampling, "evaluate_sets", watched)
    (found,) = ShapleySampling(7)(model, batch)
    assert sizes == [4 * (len(units) + 1)] * 3 + [2 * (len(units) + 1)]
    np.testing.assert_allclose(found.scores, wanted.scores, atol=1e-12)
    np.testing.assert_allclose(
        found.parts["standard_error"], wanted.parts["standard_error"], atol=1e-12
    )
    assert found.diagnostics["value"] == wanted.diagnostics["value"]
    assert found.diagnostics["empty"] == wanted.diagnostics["empty"]


@pytest.mark.parametrize("paired", [True, False])
def test_kernel_shap_is_the_constrained_least_squares_solution(paired):
    """By eliminating the last unit, with a general solver, on the sets that were drawn."""
    model = raison.load(tangled)
    batch, units, worth = questioned(model, "some very good films have a bad and lovely end")
    method, size = KernelShap(60, paired), len(units)
    design = method.choose_sets(size, batch.generator(0))
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
    design = KernelShap(samples, paired).choose_sets(size, np.random.default_rng(0))
    count = design.keep.sum(1)
    assert count.min() >= 1 and count.max() <= size - 1
    whole = design.keep[: len(design.keep) - design.drawn]
    weight = {k: (size - 1) / (math.comb(size, k) * k * (size - k)) for k in range(1, size)}
    sizes = set(whole.sum(1).tolist())
    assert {1, size - 1} <= sizes and sizes == {
        k for k in range(1, size) if min(k, size - k) <= len(sizes) / 2 + 0.5
    }
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
        assert (
            len(np.unique(design.keep, axis=0)) >= 0.95 * samples
        )  # what duplicates save is drawn anew


def test_drawn_sizes_follow_the_kernel():
    design = KernelShap(20_000).choose_sets(60, np.random.default_rng(1))
    sizes = np.bincount(design.keep[-design.drawn :].sum(1), minlength=61)
    inner = np.flatnonzero(sizes)
    expected = 1 / (inner * (60 - inner))
    expected *= sizes.sum() / expected.sum()
    assert (np.abs(sizes[inner] - expected) < 5 * np.sqrt(2 * expected)).all()
    assert inner[0] == 2 and inner[-1] == 58  # size 1 is whole
    share = design.keep[-design.drawn :: 2].mean(0)  # every unit is as likely as any other
    assert (np.abs(share - 0.5) < 0.02).all()


# -- Captum --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["classifier", "causal"])
def test_captum_agrees_exactly(kind):
    captum = pytest.importorskip("captum.attr")
    model = model_of(kind)
    batch, forward, ones = vectors(model, "The old town lies")
    ablated = captum.FeatureAblation(forward).attribute(ones)[0].numpy()
    np.testing.assert_allclose(
        methods.build("leave_one_out")(model, batch)[0].scores, ablated, atol=1e-9
    )
    exact = captum.ShapleyValues(forward).attribute(ones)[0].numpy()  # all orders
    for method in (KernelShap(), ShapleySampling(200)):
        np.testing.assert_allclose(method(model, batch)[0].scores, exact, atol=1e-9)


def test_captum_sampling_agrees_within_the_error():
    captum = pytest.importorskip("captum.attr")
    model = raison.load(tangled)
    batch, forward, ones = vectors(model, "some very good films have a bad and lovely end")
    torch.manual_seed(0)
    theirs = (
        captum.ShapleyValueSampling(forward)
        .attribute(ones, n_samples=40, perturbations_per_eval=11)[0]
        .numpy()
    )
    (ours,) = ShapleySampling(20)(model, batch)
    gap = np.abs(ours.scores - theirs)
    assert gap.max() > 1e-6  # they are two samples, not one
    assert (
        gap < 5 * 2 * ours.parts["standard_error"].max()
    ).all()  # theirs has no reverses and errs more
    (kernel,) = KernelShap(200)(model, batch)
    assert (np.abs(kernel.scores - theirs) < 5 * 2 * ours.parts["standard_error"].max()).all()


# -- what all of them promise --------------------------------------------------------------------------------


def test_too_few_samples_are_refused():
    with pytest.raises(
        InputError, match=r"20 samples are too few to tell 10 units apart: use .*samples=40"
    ):
        raison.explain(
            raison.load(bag),
            "some very good films have a bad and lovely end",
            "kernel_shap(samples=20)",
        )
    assert (
        raison.explain(raison.load(bag), "a good film", "kernel_shap(samples=6)").diagnostics[
            "evaluations"
        ]
        == 8
    )


# -- real models -----------------------------------------------------------------------------------------------


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
