"""Matches of spans, by hand and against a literal reading of ERASER."""

from __future__ import annotations

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.metrics.plausibility import (
    eraser_span_scores,
    gold_spans,
    matching_spans,
    maximal_runs,
)
from tests.helpers.plausibility import numbers, pool, subject

# -- spans --------------------------------------------------------------------------------------------------


def test_runs_end_at_gaps_and_segments():
    assert maximal_runs(np.array([1, 1, 0, 1, 0, 0, 1, 1], bool)) == [{0, 1}, {3}, {6, 7}]
    assert maximal_runs(np.array([0, 1, 1, 1], bool), [0, 0, 1, 1]) == [{1}, {2, 3}]
    assert maximal_runs(np.zeros(3, bool)) == []


def literal_eraser(texts, threshold):
    """From the paper's text: for every prediction the best IOU with an annotation, then counts."""
    matched, predicted, gold = [], [], []
    for chosen, truth in texts:
        best = []
        for p in chosen:
            values = [0.0]
            for g in truth:
                inside = sum(1 for u in p if u in g)
                values.append(inside / (len(p) + len(g) - inside))
            best.append(max(values))
        matched.append(len([b for b in best if b >= threshold]))
        predicted.append(len(chosen))
        gold.append(len(truth))

    def harmonic(p, r):
        return 0.0 if p == 0 or r == 0 else 2 * p * r / (p + r)

    def mean(values):
        return sum(values) / len(values) if values else 0.0

    p, r = sum(matched) / max(sum(predicted), 1), sum(matched) / max(sum(gold), 1)
    mp = mean([m / n for m, n in zip(matched, predicted, strict=True) if n])
    mr = mean([m / n for m, n in zip(matched, gold, strict=True) if n])
    return [p, r, harmonic(p, r), mp, mr, harmonic(mp, mr)]


def test_eraser_worked_out_by_hand():
    """Three texts, counted on paper.

    1: gold 0-3 and 8-9; chosen 1-3 (IOU 3/4, a match) and 9-12 (1/5, none).
    2: gold 0-3; chosen 0-1 (IOU exactly 1/2, a match).
    3: gold 5-6; nothing chosen.
    matches 2 of 3 chosen, of 4 gold; per text precision 1/2, 1 (the third predicts nothing), recall 1/2, 1, 0.
    """
    texts = [
        ([{1, 2, 3}, {9, 10, 11, 12}], [{0, 1, 2, 3}, {8, 9}]),
        ([{0, 1}], [{0, 1, 2, 3}]),
        ([], [{5, 6}]),
    ]
    found = eraser_span_scores(texts)
    assert found["precision_micro"] == 2 / 3 and found["recall_micro"] == 2 / 4
    assert found["f1_micro"] == pytest.approx(4 / 7)
    assert found["precision_macro"] == 3 / 4 and found["recall_macro"] == 1 / 2
    assert found["f1_macro"] == pytest.approx(2 * 0.75 * 0.5 / 1.25)

    rows = numbers(
        "span_f1_micro",
        subject(
            np.zeros(13),
            [(0, 3), (8, 9)],
            selected=[u in (1, 2, 3, 9, 10, 11, 12) for u in range(13)],
        ),
        subject(np.zeros(4), [(0, 3)], selected=[1, 1, 0, 0]),
        subject(np.zeros(8), [(5, 6)], selected=[0] * 8),
    )
    assert pool(rows, "span_precision_micro") == 2 / 3 and pool(rows, "span_recall_micro") == 2 / 4
    assert pool(rows, "span_f1_micro") == pytest.approx(4 / 7)


def test_spans_against_a_literal_reading_of_eraser():
    generator = np.random.default_rng(3)
    for _ in range(60):
        texts = []
        for _ in range(int(generator.integers(1, 6))):
            chosen, gold = generator.random((2, 12)) < 0.5
            texts.append((maximal_runs(chosen), maximal_runs(gold)))
        threshold = float(generator.choice([0.1, 0.5, 0.8]))
        expected = literal_eraser(texts, threshold)
        np.testing.assert_allclose(list(eraser_span_scores(texts, threshold).values()), expected)


def test_no_gold_span_is_matched_twice_by_runs():
    generator = np.random.default_rng(4)
    for _ in range(300):
        chosen, gold = generator.random((2, 10)) < generator.random((2, 1))
        overlapping = [*maximal_runs(gold), {0, 1, 2, 3}]
        counts = matching_spans(maximal_runs(chosen), overlapping)
        assert counts.both <= min(counts.chosen, counts.gold)
    assert (
        matching_spans([{0, 1}, {2, 3}], [{0, 1, 2, 3}]).both == 2
    )  # neighbours that are no run: as ERASER counts


def test_gold_spans_of_a_text():
    text = subject(np.zeros(10), [(0, 1), (1, 3), (0, 1), (7, 9)], second=4)
    assert gold_spans(text) == [{0, 1}, {1, 2, 3}, {7, 8, 9}]
    assert gold_spans(subject(np.zeros(4), [(2, 5), (5, 5)], cut=2)) == [
        {2, 3}
    ]  # the rest was cut off
    with pytest.raises(InputError, match="no human rationale"):
        gold_spans(subject(np.zeros(4), []))


def test_spans_do_not_cross_texts():
    """Words 4-5 end the first text and 6-7 begin the second: two spans, each of which is gold."""
    text = subject(
        np.zeros(10), [(4, 5), (6, 7)], second=4, selected=[u in (4, 5, 6, 7) for u in range(10)]
    )
    found = numbers("span_f1_macro", text)
    assert list(found.values()) == [1.0, 1.0, 1.0]


def test_span_scores_per_text():
    text = subject(np.zeros(8), [(0, 1), (4, 4)], selected=[1, 1, 0, 0, 0, 1, 0, 1])
    found = numbers("span_f1_macro", text)
    assert found["span_precision_macro"] == 1 / 3 and found["span_recall_macro"] == 1 / 2
    assert found["span_f1_macro"] == pytest.approx(2 / 5)
    # 0-3 against gold 1-3: IOU 3/4
    near = subject(np.zeros(8), [(1, 3)], selected=[1, 1, 1, 1, 0, 0, 0, 0])
    assert numbers("span_f1_macro", near)["span_f1_macro"] == 1
    assert numbers("span_f1_macro(threshold=0.8)", near)["span_f1_macro"] == 0
