"""Finite differences against literal code."""

from __future__ import annotations

import pytest
import torch

import raison
from raison.methods.deeplift import RESCALE
from raison.models.load import load
from raison.models.probe import probe_text_and_target
from raison.testing import tiny_hf, tiny_model
from raison.testing.precision import Float64
from tests.helpers.compared_scores import PAIRS, TEXT, asked, near, scores
from tests.oracles import attributions as literal


@pytest.fixture(autouse=True)
def precise():
    with Float64():
        yield


def deeplift_pair(model, encoding, target):
    """Arguments of the literal rescale rule: the same baseline."""
    from raison.methods.baselines import Baseline, WordEmbeddings, tokens_moved_from_baseline

    return (
        Baseline(WordEmbeddings(model), "auto")
        .rows(encoding, tokens_moved_from_baseline(encoding, target, "free"))
        .numpy()
    )


@pytest.mark.parametrize(("family", "task"), PAIRS)
def test_rescale_is_complete_on_every_family(family, task):
    """Contributions add up to the change of the value, whichever value it is, through every function of the model."""
    from dataclasses import replace

    model = tiny_model(family, task)
    encoding, target = probe_text_and_target(model)
    for output in ("logit", "log_prob", "prob"):
        if output == "prob" and len(target.ids) > 1:
            continue
        aimed = replace(target, output=output)
        ((_, trace),) = model.trace([encoding], [aimed], want=frozenset({"gradients"}))
        order = torch.randperm(len(encoding), generator=torch.Generator().manual_seed(0))
        pair = torch.stack([trace.embeddings, trace.embeddings[order]])
        ((_, found),) = model.trace(
            [encoding], [aimed], want=frozenset(), rules=RESCALE, embeddings=[pair]
        )
        assert not found.strange
        assert abs(found.value - trace.value) < 1e-9
        assert abs(float(found.relevance.sum()) - found.cuts[0]) < 1e-9 * max(
            1.0, float(found.relevance.abs().sum())
        )


def test_deeplift(model):
    ids, goal, types, value = asked(model)
    encoding, target = model.resolve_targets(model.encode([raison.Example(TEXT)])[0])[0]
    ours, found = scores(model, "deeplift")
    baseline = deeplift_pair(model, encoding, target)
    near(ours, literal.deeplift_rescale(model.hf, ids, goal, baseline=baseline, **types, **value))
    assert found.diagnostics["completeness_gap"] < 1e-9


def test_unknown_functions_are_named():
    """A model with a function that no rule is for says so, and that relevance was not conserved."""
    model = tiny_model("bert", "classification")
    hf, _ = tiny_hf("bert", "classification")

    class Odd(torch.nn.Module):
        def forward(self, x):
            return torch.sinh(x)

    hf.bert.pooler.activation = Odd()
    found = raison.explain(load(hf, model.tokenizer), TEXT, "lrp")
    assert any("sinh" in note for note in found.notes)
