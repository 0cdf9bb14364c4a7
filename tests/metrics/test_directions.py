"""Better explanations get better numbers, and the scale of scores does not matter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import raison
from raison.core.records import Example, Span
from raison.core.registry import metrics
from raison.metrics.base import Subject
from raison.models.protocol import Trace
from raison.models.tasks.function import Function
from tests.helpers.faithfulness import (
    BIAS,
    LITERAL,
    LONG,
    SOFT,
    WEIGHTS,
    WORDS,
    additive,
    measure,
    numbers,
    scored,
    sets_of,
    tiny,
    total,
    world_of,
)
from tests.oracles import metrics as literal

pytestmark = pytest.mark.usefixtures("precise")
BEST = 4  # words that a person would mark


class Transparent(Function):
    """The same sum as a probability, with embeddings whose entries add up to the weights."""

    offers = frozenset({"score", "gradients"})
    probable = True
    width = 8

    def __init__(self):
        super().__init__(self.logs, "transparent")

    def logs(self, texts):
        sums = np.array([total(text) for text in texts])
        return np.stack([-np.logaddexp(0, -sums), -np.logaddexp(0, sums)], axis=1)

    def trace(self, encodings, targets, *, want, embeddings=None, heads=None, rules=None):
        for i, (encoding, target) in enumerate(zip(encodings, targets, strict=True)):
            assert target.ids == (0,) and target.output == "log_prob"
            weights = [WEIGHTS[WORDS.index(word)] for word in encoding.tokens]
            rows = (
                torch.tensor(weights)[:, None].expand(-1, self.width) / self.width
                if embeddings is None
                else None
            )
            rows = embeddings[i] if rows is None else rows
            yield (
                i,
                Trace(
                    encoding,
                    target,
                    float(-np.logaddexp(0, -(BIAS + float(rows.sum())))),
                    embeddings=rows,
                ),
            )


DIRECTED = [
    name
    for name in metrics
    if metrics[name].keys[0].direction is not None and "again" not in metrics[name].needs
]


# a text of twelve units is shorter than the default k; the size of scores has no direction; draws cost nothing here
FITTING = {"micro_recall_at_k": "micro_recall_at_k(k=4)", "gold_mass": "gold_mass(sign=positive)"}
FITTING |= {name: f"{name}(samples=64)" for name in SOFT}


@pytest.mark.parametrize("name", DIRECTED)
def test_direction(name):
    """The true weights are better than random scores, and the reverse of them is worse."""
    chosen = metrics.build(FITTING.get(name, name))
    model: Any = Transparent() if "probability" in chosen.needs else raison.load(additive)
    text = " ".join(WORDS)
    example = Example(text, gold=(Span(0, len(" ".join(WORDS[:BEST]))),))
    random = np.random.default_rng(0)
    tried = [WEIGHTS, -WEIGHTS, *random.normal(size=(40, len(WORDS)))]
    subjects = [
        Subject(scored(model, text, scores, target=0), example, model, gold_share=BEST / len(WORDS))
        for scores in tried
    ]
    found = measure(model, subjects, [chosen])
    key = chosen.keys[0]
    oracle, reverse, *chance = [
        float(each[0][key.name]) * (1 if key.direction == "higher" else -1) for each in found
    ]
    assert oracle > np.mean(chance) > reverse
    if "gold" not in chosen.needs and name not in SOFT:  # for a sum, no other scores can do better
        assert oracle >= max(chance)


def test_closed_form():
    """A sum: what each number must be, by hand."""
    model = raison.load(additive)
    text = " ".join(WORDS)
    right = numbers(
        model, scored(model, text, WEIGHTS, target=0), [n for n in LITERAL if n != "lodds"]
    )
    assert right["loo_correlation"] == pytest.approx(1) and right["monotonicity"] == 1
    assert right["monotone_steps"] == pytest.approx(6 / 12)  # the positive weights
    assert (
        right["completeness_gap"] < 1e-12
        and right["infidelity"] < 1e-12
        and right["raw_infidelity"] < 1e-12
    )
    assert right["decision_flip"] == pytest.approx(1 / 12) and right["decision_flip_first"] == 1
    first = [WEIGHTS[:k].sum() for k in (1, 1, 2, 3, 6)]  # ⌈q·12⌉ of q = 1, 5, 10, 20, 50 %
    assert right["comprehensiveness"] == pytest.approx(np.mean(first))
    assert right["sufficiency"] == pytest.approx(np.mean(WEIGHTS.sum() - np.array(first)))
    wrong = numbers(
        model, scored(model, text, -WEIGHTS, target=0), [n for n in LITERAL if n != "lodds"]
    )
    assert wrong["loo_correlation"] == pytest.approx(-1) and wrong["monotonicity"] == 0
    assert wrong["completeness_gap"] == pytest.approx(1) and wrong["decision_flip_first"] == 0
    sets = sets_of(scored(model, text, WEIGHTS, target=0), model, "infidelity")
    drops = np.array([sum(WEIGHTS[u] for u in gone) for gone in sets])
    assert wrong["raw_infidelity"] == pytest.approx(np.mean((2 * drops) ** 2))


@pytest.mark.parametrize("removal", ["delete", "mask", "mask_token"])
def test_an_evaluation_removes_as_it_is_told(removal):
    from raison.studies.evaluate_methods import evaluate

    model = tiny("bert")
    explanation = raison.explain(model, LONG, "leave_one_out", removal=removal)
    found = evaluate(model, [Example(LONG)], ["leave_one_out"], ["aopc"], removal=removal)
    literally = literal.aopc(world_of("bert", explanation, removal), explanation)["aopc"]
    assert found.cell("leave_one_out", "aopc").each[0] == pytest.approx(literally, rel=1e-9)


def test_normalised_sufficiency_has_the_other_direction():
    """Plain sufficiency is a loss; its normalised form is what survives."""
    model = raison.load(additive)
    text = " ".join(WORDS)
    right, wrong = (
        numbers(model, scored(model, text, sign * WEIGHTS, target=0), ["sufficiency"])
        for sign in (1, -1)
    )
    assert right["sufficiency"] < wrong["sufficiency"]
    assert right["normalised_sufficiency"] > wrong["normalised_sufficiency"]


@pytest.mark.parametrize("power", [-80, 40])
def test_numbers_without_a_unit_do_not_depend_on_the_scale(power):
    """A function times a power of two, and so the scores: exactly the same shares, correlations and flips."""
    names = "loo_correlation monotonicity infidelity completeness_gap decision_flip sufficiency comprehensiveness"
    text = " ".join(WORDS)
    for seed in range(3):
        found = []
        for factor in (1.0, 2.0**power):
            model = raison.load(lambda texts, factor=factor: np.array(additive(texts)) * factor)
            explanation = scored(model, text, seed, target=0)
            explanation = replace(explanation, scores=explanation.scores * factor)
            found.append(numbers(model, explanation, names.split()))
        units = {"raw_infidelity", "sufficiency", "comprehensiveness"}
        assert all(found[0][key] == found[1][key] for key in set(found[0]) - units), found


def test_rounding_does_not_break_ties():
    """Five words of weight 0.1 and five of 0.2: their effects are two numbers, though sums of them are rounded."""
    words = dict(zip("a b c d e f g h i j".split(), [0.1, 0.2] * 5, strict=True))
    model = raison.load(
        lambda texts: [[sum(words[word] for word in text.split()), 0.0] for text in texts]
    )
    explanation = scored(model, " ".join(words), np.array(list(words.values())), target=0)
    found = numbers(model, explanation, ["loo_correlation", "monotonicity"])
    assert found["loo_correlation"] == pytest.approx(1)
    assert found["monotonicity"] == found["monotone_steps"] == 1
