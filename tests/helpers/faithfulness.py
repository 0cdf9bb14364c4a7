"""Metrics of faithfulness on tiny models and on models whose numbers are known."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

import raison
from raison.core.errors import RaisonError
from raison.core.records import Example, Span
from raison.core.registry import methods, metrics
from raison.engine import method_scores_again
from raison.metrics import metric_runner
from raison.metrics.base import AveragedF1, Share, Subject
from raison.testing import tiny_hf, tiny_model
from tests.oracles import metrics as literal

TEXT = "The film is a lovely surprise, isn't it?"
LONG = "The river begins in the hills above the town, and nobody who lives there has ever seen where the water goes."
TEXTS = ["A dull story with good actors.", TEXT, "Nobody in town expected it."]
WORLDS = {"bert": literal.Bert, "gpt2": literal.Gpt2}
TASKS = {"bert": "classification", "gpt2": "causal"}


# asked by kept sets of units; each has a function of the same name in oracles/metrics.py
LITERAL = (
    "comprehensiveness sufficiency aopc lodds deletion insertion decision_flip decision_flip_first loo_correlation "
    "monotonicity infidelity completeness_gap"
).split()
SOFT = ["soft_sufficiency", "soft_comprehensiveness"]
SANITY = ["max_sensitivity", "randomisation"]


@functools.cache
def tiny(family):
    return tiny_model(family, TASKS[family])


@functools.cache
def plain(family):
    """A separate eager model with the same weights, and its tokenizer."""
    hf, tokenizer = tiny_hf(family, TASKS[family])
    hf.set_attn_implementation("eager")
    return hf, tokenizer


def measure(model, subjects, chosen, removal=None) -> Any:
    return metric_runner.measure_explanations(model, subjects, chosen, removal)


def build(*names):
    return [metrics.build(name) for name in names]


def numbers(model, explanation, names, removal=None, **known):
    """All numbers of some metrics for one explanation, by key."""
    (found,) = measure(model, [Subject(explanation, model=model, **known)], build(*names), removal)
    return {key: value for each in found for key, value in each.items()}


def scored(model, text, scores, **request):
    """An explanation with these scores: the scores themselves, or random ones with this seed; None: all equal."""
    found = raison.explain(model, text, "uniform", **request)
    if scores is None:
        return found
    if isinstance(scores, int):
        scores = np.random.default_rng(scores).normal(size=len(found.units))
    return replace(found, scores=scores)


def world_of(family, explanation, removal):
    hf, tokenizer = plain(family)
    return WORLDS[family](hf, explanation, removal, tokenizer.mask_token_id)


def sets_of(explanation, model, name):
    """The sets of units that a metric would remove; its first question is the whole text."""
    kept = next(metrics.build(name).ask(Subject(explanation, model=model))).units
    assert kept[0].all()
    return [{int(u) for u in np.flatnonzero(~row)} for row in kept[1:]]


def expected(world, explanation, model, samples=64):
    found = {}
    for name in LITERAL:
        if name == "lodds" and not model.probable:
            continue
        more = (
            {"removed": sets_of(explanation, model, f"infidelity(samples={samples})")}
            if name == "infidelity"
            else {}
        )
        found.update(getattr(literal, name)(world, explanation, **more))
    return found


# -- 2. direction ------------------------------------------------------------------------------------------


WORDS = "grand lovely clever bright plain long grey old slow loud dull bad".split()
WEIGHTS = np.array([3.0, 2.2, 1.9, 1.4, 0.3, 0.2, -0.1, -0.4, -0.9, -1.3, -1.6, -2.6])
BIAS = -1.0  # the sum of all weights is 2.1: without the best word the other output is larger


def total(text: str) -> float:
    return BIAS + sum(WEIGHTS[WORDS.index(word)] for word in text.split())


def additive(texts: list[str]) -> list[list[float]]:
    return [[total(text), 0.0] for text in texts]


# -- 4. constant models ------------------------------------------------------------------------------------


def subject(model, text, method, seed=0, **known):
    """An explanation by a method that can be asked again."""
    chosen = methods.build(method)
    found = raison.explain(model, text, chosen, seed=seed)
    again = functools.partial(method_scores_again, method=chosen, explanation=found, seed=seed)
    return Subject(found, model=model, seed=seed, again=again, **known)


# -- 5. contract of every metric ---------------------------------------------------------------------------


@functools.cache
def measured_subjects():
    """Two methods and a rationale on two texts with a gold rationale, and on one text of a single unit."""
    model = tiny("bert")
    shared: dict = {}
    found = []
    for text in TEXTS[:2]:
        example = Example(text, gold=(Span(2, 12),))
        found += [
            subject(model, example, name, example=example, gold_share=0.3, cache=shared)
            for name in ("leave_one_out", "random")
        ]
        rationale = raison.rationalize(model, text)
        found.append(replace(found[-1], explanation=rationale))
    example = Example("Good", gold=(Span(0, 4),))
    found.append(
        subject(model, example, "leave_one_out", example=example, gold_share=0.3, cache=shared)
    )
    return found


def same(one, other):
    assert one.keys() == other.keys()
    for key, value in one.items():
        np.testing.assert_array_equal(as_array(value), as_array(other[key]), err_msg=key)
    return True


def as_array(value):
    if isinstance(value, Share):
        return np.array([value.part, value.whole])
    return np.array(value.sums) if isinstance(value, AveragedF1) else np.asarray(value)


# -- 6. needs ----------------------------------------------------------------------------------------------


def assert_sentence(error: RaisonError):
    text = str(error)
    assert text.endswith(".") and "\n" not in text and text.count(". ") <= 1, text
    assert len(text) > 20 and "None" not in text and "object" not in text, text
