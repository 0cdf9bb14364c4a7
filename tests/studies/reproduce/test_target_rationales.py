"""Rationales of many targets are those of the library, and rankings go on behind them."""

from __future__ import annotations

import numpy as np

from raison.core.records import Example
from raison.models.protocol import TargetSpec
from raison.studies.reproduce.target_rationales import (
    TargetInText,
    find_rationales_of_targets,
    target_is_own_token,
)
from raison.testing import tiny_model
from tests.helpers.trials import METHODS, trial_of


def test_a_ranking_goes_on_behind_the_rationale():
    model = tiny_model("gpt2", "causal")
    texts = ["the cat sat on the mat and the dog ran", "a film about the sea is a good film"]
    aims = []
    for encoding in model.encode([Example(text) for text in texts]):
        ((longer, target),) = model.resolve_targets(
            encoding, TargetSpec(target=None, output="log_prob")
        )
        aims.append(TargetInText(longer, target))
    trial = trial_of(model)
    for title, spec in METHODS.items():
        for aim, one in zip(
            aims,
            find_rationales_of_targets(trial, title, spec, aims, ranked=8).rationales,
            strict=True,
        ):
            assert one.reached
            assert one.order[0] == len(aim.encoding) - 1 == aim.given[0]
            assert len(set(one.ranking)) == len(one.ranking)
            if title == "greedy":
                assert len(one.ranking) >= 8
                assert one.ranking[: len(one.order)] == one.order
            if title == "all attentions":
                assert sorted(one.ranking) == list(range(len(aim.encoding)))
                assert one.ranking[: len(one.order)] == one.order


def test_greedy_is_that_of_the_library():
    import raison

    model = tiny_model("llama", "causal")
    text = "the cat sat on the mat and the dog ran"
    whole = raison.rationalize(model, text, "greedy")
    target = TargetInText(whole.encoding, whole.target)
    (one,) = find_rationales_of_targets(trial_of(model), "greedy", "greedy", [target]).rationales
    kept = whole.units.keep(whole.selected) & whole.scope
    assert sorted(one.order) == np.flatnonzero(kept).tolist()
    assert len(one.order) == whole.certificate.kept_tokens


def test_own_tokens_are_those_of_the_plain_model():
    import torch

    model = tiny_model("gpt2", "causal")
    (encoding,) = model.encode([Example("the cat sat on")])
    ((longer, target),) = model.resolve_targets(
        encoding, TargetSpec(target=" the mat and the dog", output="log_prob")
    )
    with torch.no_grad():
        logits = model.hf(torch.tensor(longer.ids[None])).logits[0]
    plain = [
        int(logits[p - 1].argmax()) == i for i, p in zip(target.ids, target.positions, strict=True)
    ]
    assert target_is_own_token(model, longer, target).tolist() == plain
