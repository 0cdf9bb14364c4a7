"""Spans of units that match gold spans: maximal runs, IOU of spans, and ERASER's counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from raison.metrics.base import Subject, gold_units
from raison.metrics.numbers import Share, harmonic_mean_f1
from raison.metrics.plausibility.unit_sets import Overlap, ratio_of_units_or_zero

__all__ = [
    "Spans",
    "eraser_span_scores",
    "gold_spans",
    "matching_spans",
    "maximal_runs",
    "sum_of_span_precisions",
    "sum_of_span_recalls",
]

Spans = Collection[Collection[int]]  # each the numbers of its units


def maximal_runs(chosen: np.ndarray, segment: Sequence[int] | None = None) -> list[frozenset[int]]:
    """Maximal runs of neighbouring chosen units that are of one segment."""
    found: list[set[int]] = []
    for unit in np.flatnonzero(chosen).tolist():
        before = unit - 1
        follows_a_gap = not found or before not in found[-1]
        begins_segment = segment is not None and segment[unit] != segment[before]
        if follows_a_gap or begins_segment:
            found.append(set())
        found[-1].add(unit)
    return [frozenset(run) for run in found]


def gold_spans(subject: Subject) -> list[frozenset[int]]:
    """The units of each gold span that is still there; equal ones count once, overlapping ones each."""
    example = subject.example
    if example is None or not subject.gold.any():  # without a rationale anywhere `gold` refuses
        return []

    spans = []
    for span in example.gold:
        alone = replace(example, gold=(span,))
        mask = gold_units(subject.explanation.encoding, subject.units, alone)
        units = np.flatnonzero(mask).tolist()
        if units:
            spans.append(frozenset(units))
    return list(dict.fromkeys(spans))


def matching_spans(predicted: Spans, gold: Spans, threshold: float = 0.5) -> Overlap:
    """ERASER's counts: a predicted span matches if its IOU with some gold span is at least the threshold.

    `both` is the number of predicted spans that match: the numerator of precision and of recall. Maximal runs can't
    match the same gold span twice at 0.5 or more, so recall is at most 1; for other spans it may exceed 1, as in the
    released code.
    """
    predicted_sets = set(map(frozenset, predicted))
    gold_sets = set(map(frozenset, gold))
    matches = 0
    for span in predicted_sets:
        matches += best_iou(span, gold_sets) >= threshold
    return Overlap(matches, len(predicted_sets), len(gold_sets))


def best_iou(span: frozenset[int], others: Iterable[frozenset[int]]) -> float:
    """The IOU of a span with the one that it agrees with most; 0 without others."""
    ious = [iou_of_spans(span, other) for other in others]
    return max(ious, default=0.0)


def iou_of_spans(first: frozenset[int], second: frozenset[int]) -> float:
    """Intersection over union of two spans; 0 where both are empty."""
    both = first & second
    union = first | second
    return ratio_of_units_or_zero(len(both), len(union))


def eraser_span_scores(
    texts: Iterable[tuple[Spans, Spans]], threshold: float = 0.5
) -> dict[str, float]:
    """ERASER's corpus figures from (predicted, gold) spans of each text.

    micro: matches of all texts by all predicted (gold) spans. macro: precision is averaged over the texts that predict
    something, recall over those that have gold, and F1 is that of the two averages; it is not the mean over texts of
    F1, which `span_f1_macro` reports. Where there is nothing to divide by, ERASER says 0.
    """
    counts = [matching_spans(predicted, gold, threshold) for predicted, gold in texts]
    matches = sum(each.both for each in counts)
    chosen = sum(each.chosen for each in counts)
    gold = sum(each.gold for each in counts)
    precision_micro = ratio_of_units_or_zero(matches, chosen)
    recall_micro = ratio_of_units_or_zero(matches, gold)

    precisions = sum_of_span_precisions(counts)
    recalls = sum_of_span_recalls(counts)
    precision_macro = ratio_of_units_or_zero(precisions.part, precisions.whole)
    recall_macro = ratio_of_units_or_zero(recalls.part, recalls.whole)

    return {
        "precision_micro": precision_micro,
        "recall_micro": recall_micro,
        "f1_micro": harmonic_mean_f1(precision_micro, recall_micro),
        "precision_macro": precision_macro,
        "recall_macro": recall_macro,
        "f1_macro": harmonic_mean_f1(precision_macro, recall_macro),
    }


def sum_of_span_precisions(counts: Sequence[Overlap]) -> Share:
    """The sum of the precisions of texts (or documents) in which something is chosen, and how many these are."""
    precisions = [each.both / each.chosen for each in counts if each.chosen]
    return Share(sum(precisions), len(precisions))


def sum_of_span_recalls(counts: Sequence[Overlap]) -> Share:
    """The sum of the recalls of texts (or documents) that have gold, and how many these are."""
    recalls = [each.both / each.gold for each in counts if each.gold]
    return Share(sum(recalls), len(recalls))
