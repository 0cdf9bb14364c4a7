"""Agreement with human rationales, against scikit-learn, literal code and ERASER's definition worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.core.records import Encoding, Example, Explanation, Span, Target, Units
from raison.core.registry import metrics
from raison.metrics.base import Share, Subject, ValueRange
from raison.metrics.plausibility import (
    area_under_precision_recall,
    eraser_span_scores,
    f1,
    gold_spans,
    iou,
    mass_on_gold,
    matching_spans,
    maximal_runs,
    overlap,
    precision,
    rationale_length,
    recall,
)
from raison.metrics.runner import measure

NAMES = (
    "token_f1_micro token_f1_macro token_iou span_f1_micro span_f1_macro auprc precision_at_k micro_recall_at_k top_1 "
    "gold_mass"
).split()


def subject(scores, gold, *, selected=None, order=None, second=0, share=None, cut=0):
    """Words with these scores, of which the last `second` are in a second text; gold as (first, last) word."""
    n = len(scores)
    sizes = [n - second, second] if second else [n]
    texts = [" ".join(f"w{i:02}" for i in range(size + cut)) for size in sizes]
    places = [(s, 4 * i, 4 * i + 3) for s, size in enumerate(sizes) for i in range(size)]
    segment, start, end = (np.array(column) for column in zip(*places, strict=True))
    names = tuple(texts[s][a:b] for s, a, b in places)
    segments = ("first", "second")[: len(texts)]
    encoding = Encoding(
        ids=np.arange(n),
        tokens=names,
        segments=segments,
        texts=tuple(texts),
        segment=segment,
        start=start,
        end=end,
        positions=np.arange(n),
        fixed=np.zeros(n, bool),
    )
    units = Units("word", np.arange(n), names, tuple(places))
    explanation = Explanation(
        encoding=encoding,
        units=units,
        target=Target("label", (0,)),
        scores=np.asarray(scores, float),
        method="test",
        model="none",
        selected=None if selected is None else np.asarray(selected, bool),
        order=None if order is None else np.asarray(order),
    )
    spans = []
    for a, b in gold:
        side = 0 if a < sizes[0] + cut or not second else 1
        base = sizes[0] if side else 0
        spans.append(Span(4 * (a - base), 4 * (b - base) + 3, segments[side]))
    example = Example(texts[0], texts[1] if second else None, gold=tuple(spans))
    return Subject(explanation, example, gold_share=share)


def numbers(spec, *subjects):
    chosen = metrics.build(spec)
    found = [row[0] for row in measure(None, subjects, [chosen])]
    assert all(tuple(row) == tuple(key.name for key in chosen.keys) for row in found)
    return found[0] if len(subjects) == 1 else found


def pool(found, key):
    return sum(row[key].part for row in found) / sum(row[key].whole for row in found)


def random_masks(count=40, seed=0):
    generator = np.random.default_rng(seed)
    for _ in range(count):
        n = int(generator.integers(1, 15))
        gold = generator.random(n) < 0.4
        gold[generator.integers(n)] = True
        yield generator, generator.random(n) < generator.random(), gold


# -- sets ---------------------------------------------------------------------------------------------------


def test_set_scores_by_hand():
    counts = overlap([1, 1, 0, 0, 1], [0, 1, 1, 1, 1])  # in common: units 1 and 4
    assert (precision(counts), recall(counts), iou(counts)) == (2 / 3, 2 / 4, 2 / 5)
    assert f1(counts) == pytest.approx(2 * (2 / 3) * (1 / 2) / (2 / 3 + 1 / 2))


def test_set_scores_are_those_of_scikit_learn():
    sklearn = pytest.importorskip("sklearn.metrics")
    for _, chosen, gold in random_masks():
        counts = overlap(chosen, gold)
        p, r, f, _ = sklearn.precision_recall_fscore_support(gold, chosen, average="binary", zero_division=0)
        j = sklearn.jaccard_score(gold, chosen, zero_division=0)
        np.testing.assert_allclose([precision(counts), recall(counts), f1(counts), iou(counts)], [p, r, f, j])


def test_empty_choice_is_zero_and_missing_gold_is_undefined():
    nothing = overlap([0, 0], [1, 0])
    assert precision(nothing) == recall(nothing) == f1(nothing) == iou(nothing) == 0
    missing = overlap([1, 0], [0, 0])
    assert all(math.isnan(score(missing)) for score in (precision, recall, f1, iou))
    with pytest.raises(InputError, match="same units"):
        overlap([1, 0], [1, 0, 0])


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
        subject(np.zeros(13), [(0, 3), (8, 9)], selected=[u in (1, 2, 3, 9, 10, 11, 12) for u in range(13)]),
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
    assert matching_spans([{0, 1}, {2, 3}], [{0, 1, 2, 3}]).both == 2  # neighbours that are no run: as ERASER counts


def test_gold_spans_of_a_text():
    text = subject(np.zeros(10), [(0, 1), (1, 3), (0, 1), (7, 9)], second=4)
    assert gold_spans(text) == [{0, 1}, {1, 2, 3}, {7, 8, 9}]
    assert gold_spans(subject(np.zeros(4), [(2, 5), (5, 5)], cut=2)) == [{2, 3}]  # the rest was cut off
    with pytest.raises(InputError, match="no human rationale"):
        gold_spans(subject(np.zeros(4), []))


def test_spans_do_not_cross_texts():
    """Words 4-5 end the first text and 6-7 begin the second: two spans, each of which is gold."""
    text = subject(np.zeros(10), [(4, 5), (6, 7)], second=4, selected=[u in (4, 5, 6, 7) for u in range(10)])
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


# -- scores -------------------------------------------------------------------------------------------------


def test_average_precision_is_that_of_scikit_learn():
    sklearn = pytest.importorskip("sklearn.metrics")
    for generator, _, gold in random_masks(80, seed=1):
        scores = generator.integers(0, 4, len(gold)).astype(float)  # many ties
        assert area_under_precision_recall(scores, gold) == pytest.approx(sklearn.average_precision_score(gold, scores))
        p, r, _ = sklearn.precision_recall_curve(gold, scores)
        assert area_under_precision_recall(scores, gold, "trapezoid") == pytest.approx(sklearn.auc(r, p))


def test_average_precision_literally():
    """Every threshold by itself: what is at or above it."""
    for generator, _, gold in random_masks(40, seed=2):
        scores = generator.integers(-2, 3, len(gold)).astype(float)
        points = [(0.0, 1.0)]
        step = trapezoid = 0.0
        for threshold in sorted(set(scores.tolist()), reverse=True):
            above = [g for s, g in zip(scores, gold, strict=True) if s >= threshold]
            points.append((sum(above) / gold.sum(), sum(above) / len(above)))
            (r0, p0), (r1, p1) = points[-2:]
            step += (r1 - r0) * p1
            trapezoid += (r1 - r0) * (p0 + p1) / 2
        assert area_under_precision_recall(scores, gold) == pytest.approx(step)
        assert area_under_precision_recall(scores, gold, "trapezoid") == pytest.approx(trapezoid)


def test_average_precision_of_equal_scores_and_of_huge_ones():
    assert area_under_precision_recall([2.0] * 4, [1, 0, 0, 0]) == 0.25
    assert area_under_precision_recall([-0.0, 0.0], [1, 0]) == 0.5
    assert area_under_precision_recall([1e308, -1e308], [1, 0]) == 1
    assert math.isnan(area_under_precision_recall([1.0, 2.0], [0, 0]))
    with pytest.raises(InputError, match="NaN"):
        area_under_precision_recall([1.0, math.nan], [0, 1])


def test_mass_on_gold():
    assert mass_on_gold([1, -2, 3, -4], [1, 1, 0, 0]) == pytest.approx(3 / 10)
    assert mass_on_gold([1, -2, 3, -4], [1, 1, 0, 0], "positive") == pytest.approx(1 / 4)
    for constant in (-1.0, 0.0, 5e-324, 1e308):
        assert mass_on_gold([constant] * 4, [1, 0, 0, 0]) == pytest.approx(1 / 4)
        assert mass_on_gold([constant] * 4, [1, 0, 0, 0], "positive") == pytest.approx(1 / 4)
    assert mass_on_gold([-1, -2], [1, 0], "positive") == 0.5  # no mass anywhere
    assert math.isnan(mass_on_gold([1, 2], [0, 0]))


# -- how many units -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "k, units, gold, share, expected",
    [
        (None, 20, 3, None, 3),
        (None, 20, 3, 0.25, 5),
        (None, 10, 3, 0.25, 3),  # 2.5 is rounded up
        (None, 10, 3, 0.01, 1),
        (7, 20, 3, 0.25, 7),
        (30, 20, 3, None, 20),
        (0.1, 20, 3, 0.9, 2),
        (1, 20, 3, None, 1),
        (1.0, 20, 3, None, 20),
        (None, 5, 0, None, 1),
    ],
)
def test_length_of_a_rationale(k, units, gold, share, expected):
    assert rationale_length(k, units, gold, share) == expected


@pytest.mark.parametrize("spec", ["token_f1_micro(k=0)", "token_iou(k=1.5)", "precision_at_k(k=-1)", "top_1(k=3)"])
def test_bad_parameters_are_refused(spec):
    with pytest.raises(InputError):
        metrics.build(spec)


def test_more_bad_parameters_are_refused():
    for spec in (
        "micro_recall_at_k(k=0.5)",
        "span_f1_micro(threshold=0.4)",
        "auprc(area=round)",
        "gold_mass(sign=all)",
    ):
        with pytest.raises(InputError):
            metrics.build(spec)


def test_a_rationale_is_taken_as_it_is():
    scores = [5, 4, 3, 2, 1]
    plain = numbers("token_f1_macro(k=2)", subject(scores, [(3, 4)]))
    chosen = numbers("token_f1_macro(k=2)", subject(scores, [(3, 4)], selected=[0, 0, 0, 1, 1]))
    assert plain["token_f1_macro"] == 0 and chosen["token_f1_macro"] == 1
    first = subject(scores, [(3, 3)], selected=[0, 0, 0, 1, 1], order=[3, 4])
    assert numbers("top_1", first)["top_1"] == 1  # what was found first is the best, whatever its score


# -- metrics ------------------------------------------------------------------------------------------------


def test_micro_and_macro_are_not_the_same():
    """Text 1: 2 chosen, 1 of them gold, 1 gold. Text 2: 4 chosen, 4 of them gold, 8 gold."""
    one = subject(np.zeros(4), [(0, 0)], selected=[1, 1, 0, 0])
    two = subject(np.zeros(8), [(0, 7)], selected=[1, 1, 1, 1, 0, 0, 0, 0])
    rows = numbers("token_f1_micro", one, two)
    assert pool(rows, "token_precision_micro") == 5 / 6 and pool(rows, "token_recall_micro") == 5 / 9
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
