"""What all metrics of plausibility share: pooled numbers, directions, and what does not matter."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raison.core.registry import metrics
from raison.metrics.base import Share, ValueRange
from raison.metrics.plausibility import (
    maximal_runs,
)
from tests.helpers.plausibility import numbers, pool, random_masks, subject

NAMES = (
    "token_f1_micro token_f1_macro token_iou span_f1_micro span_f1_macro auprc precision_at_k micro_recall_at_k top_1 "
    "gold_mass"
).split()


# -- metrics ------------------------------------------------------------------------------------------------


def test_micro_and_macro_are_not_the_same():
    """Text 1: 2 chosen, 1 of them gold, 1 gold. Text 2: 4 chosen, 4 of them gold, 8 gold."""
    one = subject(np.zeros(4), [(0, 0)], selected=[1, 1, 0, 0])
    two = subject(np.zeros(8), [(0, 7)], selected=[1, 1, 1, 1, 0, 0, 0, 0])
    rows = numbers("token_f1_micro", one, two)
    assert (
        pool(rows, "token_precision_micro") == 5 / 6 and pool(rows, "token_recall_micro") == 5 / 9
    )
    assert pool(rows, "token_f1_micro") == pytest.approx(10 / 15)
    rows = numbers("token_f1_macro", one, two)
    assert np.mean([row["token_precision_macro"] for row in rows]) == 0.75
    assert np.mean([row["token_f1_macro"] for row in rows]) == pytest.approx((2 / 3 + 8 / 12) / 2)
    rows = numbers("token_iou", one, two)
    assert np.mean([row["token_iou_macro"] for row in rows]) == pytest.approx((1 / 2 + 4 / 8) / 2)
    assert pool(rows, "token_iou_micro") == 5 / 10


def test_pooled_scores_are_scikit_learns_over_all_tokens():
    sklearn = pytest.importorskip("sklearn.metrics")
    subjects, all_gold, all_chosen = [], [], []
    for _, chosen, gold in random_masks(12, seed=5):
        spans = [(min(run), max(run)) for run in maximal_runs(gold)]
        subjects.append(subject(np.zeros(len(gold)), spans, selected=chosen))
        all_gold += gold.tolist()
        all_chosen += chosen.tolist()
    rows = numbers("token_f1_micro", *subjects)
    p, r, f, _ = sklearn.precision_recall_fscore_support(all_gold, all_chosen, average="binary")
    keys = ("token_precision_micro", "token_recall_micro", "token_f1_micro")
    np.testing.assert_allclose([pool(rows, key) for key in keys], [p, r, f])
    assert pool(numbers("token_iou", *subjects), "token_iou_micro") == pytest.approx(
        sklearn.jaccard_score(all_gold, all_chosen)
    )


def test_precision_at_k_and_micro_recall_at_k():
    """Scores fall along the text, so the best k are the first k."""
    long = subject(-np.arange(30.0), [(3, 4), (18, 25)])  # of the first 20: words 3, 4, 18, 19
    short = subject(-np.arange(6.0), [(5, 5)])
    rows = numbers("micro_recall_at_k", long, short)
    assert rows[0]["micro_recall_at_k"] == Share(4, 10)
    assert rows[1]["micro_recall_at_k"] == Share(1, 1)  # a text of at most k units is found whole
    assert pool(rows, "micro_recall_at_k") == 5 / 11
    rows = numbers("precision_at_k(k=20)", long, short)
    assert [row["precision_at_k"] for row in rows] == [4 / 20, 1 / 6]
    assert numbers("precision_at_k(k=0.1)", long)["precision_at_k"] == 0
    assert numbers("precision_at_k", long)["precision_at_k"] == 2 / 10
    assert numbers("top_1", long)["top_1"] == 0


def test_texts_whose_rationale_was_cut_off():
    gone = subject(np.arange(4.0), [(4, 5)], cut=2)
    for name in NAMES:
        for value in numbers(name, gone).values():
            assert value == Share(0, 0) if isinstance(value, Share) else math.isnan(value)


@pytest.mark.parametrize("name", NAMES)
def test_constant_scores_have_a_number(name):
    for constant in (0.0, 1.0, -1.0):
        for gold in ([(0, 0)], [(1, 4)], [(0, 4)]):
            for value in numbers(name, subject([constant] * 5, gold)).values():
                assert 0 <= float(value) <= 1


@pytest.mark.parametrize("name", NAMES)
def test_better_is_higher(name):
    """The gold mask itself as scores has the best number, and beats random scores in the mean."""
    generator = np.random.default_rng(6)
    chosen = metrics.build(name if name != "micro_recall_at_k" else "micro_recall_at_k(k=5)")
    assert chosen.needs == {"gold"}
    assert all(key.direction == "higher" and key.range == ValueRange(0, 1) for key in chosen.keys)
    key = chosen.keys[0].name
    perfect, rand = [], []
    for _ in range(40):
        gold = [(2, 4), (9, 10)]
        mask = np.zeros(14)
        mask[[2, 3, 4, 9, 10]] = 1
        for scores, values in ((mask, perfect), (generator.random(14), rand)):
            value = float(numbers(str(chosen.spec()), subject(scores, gold))[key])
            assert 0 <= value <= 1
            values.append(value)
    assert min(perfect) == 1
    assert np.mean(rand) < 0.8


@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith("span")])
def test_order_of_words_does_not_matter(name):
    generator = np.random.default_rng(7)
    scores = generator.permutation(10).astype(float)
    gold = np.array([1, 0, 0, 1, 1, 0, 0, 0, 1, 0], bool)
    found = []
    for order in (np.arange(10), generator.permutation(10)):
        spans = [(u, u) for u in np.flatnonzero(gold[order]).tolist()]
        found.append([float(v) for v in numbers(name, subject(scores[order], spans)).values()])
    np.testing.assert_allclose(*found)


def test_monotone_transforms_change_only_the_mass():
    scores = np.array([0.1, 0.9, 0.4, 0.3, 0.8])
    for name in NAMES:
        a = numbers(name, subject(scores, [(1, 2)]))
        b = numbers(name, subject(np.exp(5 * scores), [(1, 2)]))
        assert (a == b) is (name != "gold_mass")
