"""Whether one explanation is trusted: its order against chance, where the right order is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

import raison
from raison.studies import trust as study
from raison.studies.trust import CHANCES, trust

WORDS = "alpha beta gamma delta epsilon zeta eta theta".split()
WEIGHTS = 2.0 ** -np.arange(len(WORDS))  # no two sets of words weigh the same


def additive(texts):
    """What the words of a text weigh together."""
    weights = dict(zip(WORDS, WEIGHTS, strict=True))
    return [[sum(weights.get(word, 0.0) for word in text.split()), 0.0] for text in texts]


@pytest.fixture(scope="module")
def model():
    return raison.load(additive)


def explained(model, scores):
    return replace(raison.explain(model, " ".join(WORDS), "uniform", target=0), scores=np.asarray(scores, float))


def test_the_right_order_beats_chance_and_the_wrong_one_never_does(model):
    right, wrong = trust(model, explained(model, WEIGHTS)), trust(model, explained(model, -WEIGHTS))
    for key in ("deletion", "insertion"):
        assert right.numbers[key]["chance"] == pytest.approx(1 / (1 + CHANCES)), key
        assert wrong.numbers[key]["chance"] == 1.0, key
        assert right.numbers[key]["this"] == pytest.approx(right.numbers[key]["leave_one_out"])
    assert right.sentences[0].startswith("Its order means something")
    assert wrong.sentences[0].startswith("Its order is no better than chance")


def test_curves_are_what_is_left_of_the_sum(model):
    """Words taken away from the heaviest on: the value on the way, and between the best and the worst all others."""
    told = trust(model, explained(model, WEIGHTS)).curves["deletion"]
    steps = np.arange(len(WORDS) + 1)
    along = lambda values: np.interp(np.linspace(0, len(WORDS), len(told["this"])), steps, values)  # noqa: E731
    rest = along([WEIGHTS[k:].sum() for k in steps])
    np.testing.assert_allclose(told["this"], rest, rtol=1e-9, atol=1e-12)
    worst = along([WEIGHTS[: len(WORDS) - k].sum() for k in steps])
    for key in ("random", "random_low", "random_high"):
        assert (rest - 1e-12 <= told[key]).all() and (np.array(told[key]) <= worst + 1e-12).all()
    assert (np.array(told["random_low"]) <= told["random"]).all() and told["random_low"] != told["random_high"]


def test_stability_is_the_smallest_correlation_of_two_seeds(model, monkeypatch):
    rng = np.random.default_rng(0)
    made = [rng.normal(size=len(WORDS)) for _ in range(study.SEEDS)]
    monkeypatch.setattr(study, "once_more", lambda model, method, explanation, seed=0: made[seed])
    found = study.stability(model, None, explained(model, WEIGHTS))
    each = [spearmanr(a, b).statistic for i, a in enumerate(made) for b in made[:i]]
    assert found == pytest.approx(min(each)) and found < max(each)
