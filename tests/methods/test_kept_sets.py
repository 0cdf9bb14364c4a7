"""Kept sets that begin alike are computed together where that pays."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import raison
from raison.methods.kept_sets import kept_sets_share_prefixes
from raison.models.protocol import Question
from raison.testing.precision import Float64
from tests.helpers.removed_units import REMOVERS, TEXT, model_of


@pytest.fixture(autouse=True)
def precise(request):
    real = "registry" in request.keywords  # real models are what they are: float32
    with nullcontext() if real else Float64():
        yield


@pytest.mark.parametrize("kind", ["causal", "windowed", "writer"])
@pytest.mark.parametrize("method", [*REMOVERS, "kernel_shap(samples=300)"])
def test_sharing_changes_cost_but_no_score(monkeypatch, kind, method):
    model = model_of(kind)
    assert model.shares_prefixes
    texts = [TEXT, "Nobody in town expected it."]
    shared = raison.explain(model, texts, method, units="token")
    monkeypatch.setattr(model.runner, "shares_prefixes", False)
    literal = raison.explain(model, texts, method, units="token")
    for one, other in zip(shared, literal, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-9)
        assert (
            one.cost["forwards"] == other.cost["forwards"]
            and one.cost["tokens"] <= other.cost["tokens"]
        )
        if kind != "writer" and method in ("leave_one_out", "occlusion"):
            assert one.cost["tokens"] < 0.65 * other.cost["tokens"]


def test_what_is_worth_sharing():
    model = model_of("causal")
    encoding = model.encode([raison.Example("The old town lies on a hill above the small river")])[
        0
    ]
    target = model.resolve_targets(encoding)[0][1]
    size = len(encoding)
    assert kept_sets_share_prefixes(Question(encoding, target, ~np.eye(size, dtype=bool)))
    few = np.random.default_rng(0).random((4, size)) < 0.5
    few[:, 0] = [True, False, True, False]
    assert not kept_sets_share_prefixes(Question(encoding, target, few))
    assert not kept_sets_share_prefixes(Question(encoding, target, np.ones((1, size), bool)))
    literal = [
        tuple(np.flatnonzero((row | target.given(encoding)) & target.inputs(size))) for row in few
    ]
    nodes = {path[:end] for path in literal for end in range(1, len(path) + 1)}
    assert len(nodes) > 0.75 * sum(map(len, set(literal)))  # what the rule has counted


def test_a_source_that_differs_shares_nothing():
    model = model_of("writer")
    encoding, target = model.resolve_targets(
        model.encode([raison.Example("The old town lies")])[0]
    )[0]
    source = encoding.segment == 0
    removed = np.array([np.arange(len(encoding)) != t for t in np.flatnonzero(source)])
    assert not kept_sets_share_prefixes(Question(encoding, target, removed))
