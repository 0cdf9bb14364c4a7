"""Trained adversaries: what they reach, what they learn from, what is kept when they are stopped."""

from __future__ import annotations

import copy
from contextlib import contextmanager

import pytest
import torch

from raison.core.errors import RaisonError
from raison.models.load import load
from raison.studies.audit.trained_adversary import (
    base_answers,
    states_with_other_attention,
    train_adversary,
)
from raison.training.labelled_lines import LabelledLine, padded_lines
from tests.helpers.small_classifiers import reviews


def test_trained_adversaries(taught):
    model = load(taught)
    lines = [
        LabelledLine(tuple(model.tokenizer(e.text)["input_ids"]), model.labels.index(e.label))
        for e in reviews(160, seed=3)
    ]
    before = {name: weight.clone() for name, weight in model.hf.state_dict().items()}
    settings = {"epochs": 6, "batch": 16, "lr": 1e-2}
    none = train_adversary(model, lines[:128], lines[128:], kind="frozen", lam=0.0, **settings)
    frozen = train_adversary(model, lines[:128], lines[128:], kind="frozen", lam=5.0, **settings)
    free = train_adversary(model, lines[:128], lines[128:], kind="unfrozen", lam=0.5, **settings)
    assert (
        none.tvd < 0.1 and frozen.jsd > 0.1 and frozen.accuracy < 0.8
    )  # answers go where attention goes
    assert (
        free.jsd > 0.3 and free.tvd < 0.2 and free.accuracy > 0.9
    )  # a new model says the same by other attention
    assert all(torch.equal(before[name], weight) for name, weight in model.hf.state_dict().items())


def test_what_adversaries_take_from_the_base_is_what_it_says(taught):
    model = load(taught)
    lines = [
        LabelledLine(tuple(model.tokenizer(e.text)["input_ids"]), 0) for e in reviews(20, seed=4)
    ]
    ids, there, _ = padded_lines(lines)
    other = copy.deepcopy(model.hf)
    torch.manual_seed(0)
    for parameter in other.scorer.parameters():
        torch.nn.init.normal_(parameter)
    with torch.no_grad():
        told, mine = model.hf(ids, attention_mask=there), other(ids, attention_mask=there)
        logits, weights = states_with_other_attention(other, told.read, told.real)
    assert torch.equal(logits, mine.logits) and torch.equal(weights, mine.weights)
    assert not torch.allclose(weights, told.weights, atol=0.01)
    known, more = (
        base_answers(model.hf, lines, batch=7),
        base_answers(model.hf, lines, batch=7, states=True),
    )
    for row, (line, said, own) in enumerate(
        zip(lines, told.logits.softmax(-1), told.weights, strict=True)
    ):
        answer, with_states = known[id(line)], more[id(line)]
        assert torch.allclose(answer.probabilities, said, atol=1e-6)
        assert answer.states is None and answer.real is None
        assert (
            torch.allclose(answer.attention, own[: len(line)], atol=1e-6)
            and not own[len(line) :].any()
        )
        assert torch.equal(with_states.attention, answer.attention)
        assert with_states.real.tolist() == told.real[row, : len(line)].tolist()
        assert torch.allclose(with_states.states, told.read[row, : len(line)], atol=1e-6)


def test_a_stopped_adversary_says_what_is_kept(taught, tmp_path, monkeypatch):
    lines = [
        LabelledLine(tuple(load(taught).tokenizer(e.text)["input_ids"]), 0)
        for e in reviews(64, seed=3)
    ]

    @contextmanager
    def impatient():
        calls = iter(range(100))
        yield lambda: next(calls) > 2

    settings = {"kind": "frozen", "lam": 1.0, "epochs": 4, "batch": 16}
    whole = train_adversary(
        load(taught), lines[:48], lines[48:], **settings, folder=tmp_path / "whole"
    )
    assert not (tmp_path / "whole").exists()
    with monkeypatch.context() as patched:
        patched.setattr("raison.training.fit.training_stop_asked", impatient)
        with pytest.raises(
            RaisonError, match="nothing of this audit is kept: with --keep FOLDER it could go on"
        ):
            train_adversary(load(taught), lines[:48], lines[48:], **settings)
        with pytest.raises(RaisonError, match="the same command goes on from there"):
            train_adversary(
                load(taught), lines[:48], lines[48:], **settings, folder=tmp_path / "half"
            )
    assert (
        train_adversary(load(taught), lines[:48], lines[48:], **settings, folder=tmp_path / "half")
        == whole
    )
