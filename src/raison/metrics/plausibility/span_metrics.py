"""Agreement of chosen spans with gold spans: ERASER's IOU-F1 in the text's own units."""

from __future__ import annotations

from dataclasses import dataclass

from raison.core.errors import InputError
from raison.core.parameters import check_in_range
from raison.metrics.base import Numbers, Subject, metric
from raison.metrics.plausibility.base import Plausibility, agreement_key, pooled_agreement_key
from raison.metrics.plausibility.matching_spans import gold_spans, matching_spans, maximal_runs
from raison.metrics.plausibility.rationale_units import (
    Length,
    check_rationale_length,
    rationale_units,
)
from raison.metrics.plausibility.unit_sets import (
    Overlap,
    f1,
    pooled_f1,
    pooled_precision,
    pooled_recall,
    precision,
    recall,
)

__all__ = ["SpanF1Macro", "SpanF1Micro", "check_threshold_of_span_iou"]


def check_threshold_of_span_iou(threshold: float) -> None:
    """Refuse a threshold on the IOU at which two spans could match the same gold span."""
    check_in_range("threshold", threshold, 0, 1)
    if threshold < 0.5:
        raise InputError(
            f"threshold is at least 0.5, or a gold span could be found twice, not {threshold}."
        )


@metric("span_f1_micro")
@dataclass(frozen=True)
class SpanF1Micro(Plausibility):
    """IOU-F1 of ERASER: F1, precision and recall of chosen spans that cover a gold span, pooled over all texts.

    Chosen spans are maximal runs of neighbouring chosen units of one segment. M of them have an IOU (in units) with a
    gold span of at least the threshold. precision = ΣM / Σ chosen spans, recall = ΣM / Σ gold spans, F1 = 2 ΣM /
    (Σ chosen + Σ gold spans), sums over texts.
    """

    threshold: float = 0.5  # smallest IOU of a match, from 0.5 to 1
    # units to choose: a whole number, a share (1.0: all), None: as many as people do
    k: int | float | None = None

    paper = "DeYoung et al. 2020 (ERASER), IOU F1, micro"
    keys = (
        pooled_agreement_key("span_f1_micro"),
        pooled_agreement_key("span_precision_micro"),
        pooled_agreement_key("span_recall_micro"),
    )

    def __post_init__(self) -> None:
        check_rationale_length(self.k)
        check_threshold_of_span_iou(self.threshold)

    def numbers(self, subject: Subject) -> Numbers:
        counts = span_overlap(subject, self.k, self.threshold)
        return {
            "span_f1_micro": pooled_f1(counts),
            "span_precision_micro": pooled_precision(counts),
            "span_recall_micro": pooled_recall(counts),
        }


@metric("span_f1_macro")
@dataclass(frozen=True)
class SpanF1Macro(Plausibility):
    """IOU-F1 of ERASER for each text, averaged over texts.

    As `span_f1_micro`, with the counts of one text. ERASER's own macro F1 is computed from the averaged precision (over
    texts that choose something) and the averaged recall: `eraser_iou_f1_macro`.
    """

    threshold: float = 0.5  # smallest IOU of a match, from 0.5 to 1
    # units to choose: a whole number, a share (1.0: all), None: as many as people do
    k: int | float | None = None

    paper = "DeYoung et al. 2020 (ERASER), IOU F1"
    keys = (
        agreement_key("span_f1_macro"),
        agreement_key("span_precision_macro"),
        agreement_key("span_recall_macro"),
    )

    def __post_init__(self) -> None:
        check_rationale_length(self.k)
        check_threshold_of_span_iou(self.threshold)

    def numbers(self, subject: Subject) -> Numbers:
        counts = span_overlap(subject, self.k, self.threshold)
        return {
            "span_f1_macro": f1(counts),
            "span_precision_macro": precision(counts),
            "span_recall_macro": recall(counts),
        }


def span_overlap(subject: Subject, k: Length, threshold: float) -> Overlap:
    """Counts of the spans of the rationale, of gold spans, and of those that match."""
    segments = [segment for segment, _, _ in subject.units.spans]
    chosen = maximal_runs(rationale_units(subject, k), segments)
    return matching_spans(chosen, gold_spans(subject), threshold)
