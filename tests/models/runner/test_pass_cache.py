"""One forward pass for the prediction and for the trace: half the passes, the same numbers, bounded memory."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import raison
from raison import engine
from raison.core.registry import methods
from raison.models.protocol import Budget
from raison.models.runner import pass_cache
from raison.testing import tiny_model
from raison.testing.model_contract import example_texts_of_contract

TASKS = [
    ("bert", "classification"), ("bert", "qa"), ("roberta", "tagging"), ("gpt2", "causal"), ("llama", "causal"),
    ("t5", "seq2seq"),
]  # fmt: skip
WATCHING = [
    name for name in methods if methods.build(name).watches and name != "masked_lrp"
]  # that one needs a file


class Passes:
    """Counts the forward passes of a model's view."""

    def __init__(self, model):
        self.count = 0
        self.hook = model.runner.view.register_forward_pre_hook(self.counted)

    def counted(self, *_):
        self.count += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hook.remove()


def twice(monkeypatch, model, texts, name, **options):
    """Explanations with and without kept passes, and how many passes each took."""
    found = []
    for keeps in (True, False):
        with monkeypatch.context() as patch, Passes(model) as passes:
            if not keeps:
                patch.setattr(engine, "caching_passes", lambda want: nullcontext())
            answers = raison.explain(model, texts, name, **options)
        found.append((answers, passes.count))
    return found


def same(ours, others):
    assert len(ours) == len(others)
    for a, b in zip(ours, others, strict=True):
        np.testing.assert_allclose(a.scores, b.scores, rtol=1e-9, atol=1e-12)
        assert a.target == b.target
        assert a.prediction == b.prediction


@pytest.mark.parametrize("name", WATCHING)
def test_scores_are_those_of_a_pass_of_its_own(monkeypatch, name):
    model = tiny_model("bert", "classification")
    (ours, few), (others, many) = twice(
        monkeypatch, model, example_texts_of_contract(model) * 2, name
    )
    same(ours, others)
    assert few < many


@pytest.mark.parametrize(("family", "task"), TASKS)
def test_every_task_saves_the_pass_of_the_prediction(monkeypatch, family, task):
    model = tiny_model(family, task)
    texts = example_texts_of_contract(model)
    (ours, few), (others, many) = twice(monkeypatch, model, texts, "input_x_gradient")
    same(ours, others)
    if (
        task == "seq2seq"
    ):  # explains what it writes, of which the prediction is only the first token
        assert few == many
    elif task == "tagging":  # predicts text by text
        assert few < many
    else:
        assert few * 2 == many


@pytest.mark.parametrize(
    "options", [{"target": "all"}, {"target": 1}, {"contrast": 0, "target": 2}, {"output": "prob"}]
)
def test_other_targets_are_read_from_the_kept_pass(monkeypatch, options):
    model = tiny_model("bert", "classification")
    (ours, few), (others, many) = twice(
        monkeypatch, model, example_texts_of_contract(model), "gae", **options
    )
    same(ours, others)
    assert few < many


def test_a_longer_target_needs_a_pass_of_its_own(monkeypatch):
    model = tiny_model("gpt2", "causal")
    (ours, _), (others, _) = twice(
        monkeypatch, model, ["the film is"], "input_x_gradient", target=" a good story"
    )
    np.testing.assert_allclose(ours[0].scores, others[0].scores, rtol=1e-9, atol=1e-12)


def test_what_is_kept_is_no_larger_than_one_pass(monkeypatch):
    model = tiny_model("bert", "classification")
    texts = [" ".join(["good"] * size) for size in range(3, 15)]
    model.budget = Budget(tokens=20)
    held = []
    add = pass_cache.PassCache.add
    monkeypatch.setattr(
        pass_cache.PassCache, "add", lambda self, *run: (add(self, *run), held.append(self.tokens))
    )
    (ours, few), (others, many) = twice(monkeypatch, model, texts, "gradient_norm")
    same(ours, others)
    assert max(held) <= 20
    assert few < many < 2 * len(texts) + 1


def test_long_texts_are_not_kept_beyond_the_bytes_of_one_pass(monkeypatch):
    model = tiny_model("bert", "classification")
    model.budget = Budget(bytes=200_000)
    held = []
    add = pass_cache.PassCache.add
    monkeypatch.setattr(
        pass_cache.PassCache, "add", lambda self, *run: (add(self, *run), held.append(self.bytes))
    )
    (ours, _), (others, _) = twice(
        monkeypatch, model, [" ".join(["good"] * size) for size in range(10, 30)], "gae"
    )
    same(ours, others)
    assert held
    assert max(held) <= 200_000


def test_nothing_is_kept_afterwards_or_for_methods_that_do_not_look_inside():
    model = tiny_model("bert", "classification")
    raison.explain(model, example_texts_of_contract(model), "gradient_norm")
    assert pass_cache.current_cache.get() is None
    with pass_cache.caching_passes(methods.build("leave_one_out").watches):
        assert pass_cache.current_cache.get() is None
