"""The importance and the influence of words and hidden states, beside their formulas."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import raison
from raison.core.records import Example
from raison.models.load import load
from raison.studies.audit import state_importance
from raison.studies.audit.state_importance import (
    influence_on_states,
    state_gradients,
    state_removals,
)
from raison.testing import tiny_hf
from tests.helpers.attentive import model_of
from tests.helpers.small_classifiers import CONFIGS

TEXT = "a lovely film and a very dull ending"


@pytest.mark.parametrize("design", CONFIGS)
def test_importance_of_states_is_the_formula(design):
    model = model_of(**design)
    encodings = model.encode([Example(TEXT), Example("it is dull"), Example(TEXT + " and loud")])
    gradients, removals = state_gradients(model, encodings), state_removals(model, encodings)
    for number, encoding in enumerate(encodings):
        ids = torch.tensor(encoding.ids)[None]
        told = model.hf(ids)
        read = told.read.detach().requires_grad_()
        scores = model.hf.scorer(read)
        logits = model.hf.decoder((model.hf.normalizer(scores, told.real)[:, None] @ read)[:, 0])
        best = int(logits.argmax())
        logits.softmax(-1)[0, best].backward()
        sizes = read.grad[0, 1:-1].norm(dim=-1).numpy()
        np.testing.assert_allclose(gradients[number], sizes / sizes.sum(), atol=1e-9)
        moved = []
        for i in range(1, len(encoding) - 1):
            left = told.real.clone()
            left[0, i] = False
            weights = model.hf.normalizer(told.scores, left)
            alone = model.hf.decoder((weights[:, None] @ told.read)[:, 0]).softmax(-1)[0, best]
            moved.append(abs(float(told.logits.softmax(-1)[0, best] - alone)))
        np.testing.assert_allclose(removals[number], np.array(moved) / sum(moved), atol=1e-9)


@pytest.mark.parametrize("design", CONFIGS[:3])
def test_influence_is_the_formula(design):
    model = model_of(**design)
    (encoding,) = model.encode([Example(TEXT)])
    ids = torch.tensor(encoding.ids)[None]
    n = len(encoding) - 2
    sizes, facets = np.zeros((n, n)), np.zeros((n, n))
    table = model.hf.words
    leaf = table(ids).detach().requires_grad_()
    there = torch.ones_like(ids, dtype=torch.bool)
    told = {"none": lambda h: h, "concat": lambda h: torch.cat([h, leaf], -1)}[
        design.get("combine", "none")
    ]
    states = told(model.hf.encoder(leaf, there, None))[0]  # what attention reads
    for p in range(n):
        (slope,) = torch.autograd.grad(states[p + 1].norm(), leaf, retain_graph=True)
        sizes[p] = slope[0, 1:-1].norm(dim=-1).numpy()
        for f in range(states.shape[-1]):
            (slope,) = torch.autograd.grad(states[p + 1, f], leaf, retain_graph=True)
            facets[p] += slope[0, 1:-1].square().sum(-1).numpy()
    # behind a fresh LayerNorm all states are of one size, so its slopes are little more than rounding
    rough = 1e-2 if design.get("encoder") == "transformer" else 1e-7
    np.testing.assert_allclose(
        influence_on_states(model, encoding),
        sizes / sizes.sum(1, keepdims=True),
        rtol=rough,
        atol=1e-9,
    )
    facets = np.sqrt(facets)
    np.testing.assert_allclose(
        influence_on_states(model, encoding, facets=True),
        facets / facets.sum(1, keepdims=True),
        atol=1e-9,
    )


def test_influence_in_parts_is_the_same(monkeypatch):

    model = model_of()
    (encoding,) = model.encode([Example(TEXT)])
    whole = influence_on_states(model, encoding)
    monkeypatch.setattr(state_importance, "ROWS", 1)
    np.testing.assert_allclose(influence_on_states(model, encoding), whole, atol=1e-12)
    bert = load(*tiny_hf("bert", "classification"))
    (encoding,) = bert.encode([Example(raison.testing.tiny.TEXTS[0])])
    found = influence_on_states(bert, encoding)
    np.testing.assert_allclose(found.sum(1), 1)
