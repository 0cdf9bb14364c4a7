"""ERASER's macro IOU-F1 as its own scorer computes it, in ERASER's documents and tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.eraser_documents import (
    Document,
    documents_of,
    spans_of_eraser_tokens,
    units_of_eraser_tokens,
)
from raison.core.records import Example
from raison.metrics.base import AveragedF1, Numbers, Subject, metric
from raison.metrics.plausibility.base import Plausibility, pooled_agreement_key
from raison.metrics.plausibility.matching_spans import (
    matching_spans,
    maximal_runs,
    sum_of_span_precisions,
    sum_of_span_recalls,
)
from raison.metrics.plausibility.rationale_units import (
    Length,
    check_rationale_length,
    rationale_units,
)
from raison.metrics.plausibility.span_metrics import check_threshold_of_span_iou
from raison.metrics.plausibility.unit_sets import Overlap

__all__ = ["EraserIouF1Macro"]


@metric("eraser_iou_f1_macro")
@dataclass(frozen=True)
class EraserIouF1Macro(Plausibility):
    """IOU-F1 of ERASER, macro, as its own scorer computes it: the F1 of the averaged precision and recall.

    A chosen span matches if its IOU with a gold span is at least the threshold, both in ERASER's tokens (between
    spaces). Precision is averaged over the documents in which something is chosen, recall over those with gold, and
    F1 = 2 P R / (P + R). Gold that was cut off with the end of a long text is not found. `--export` writes the file
    for which ERASER's scorer gives the same number. One deviation: a record in which people marked nothing is left
    out here, as by all metrics of gold; ERASER's scorer counts what is chosen in it as wrong.
    """

    threshold: float = 0.5  # smallest IOU of a match, from 0.5 to 1
    # units to choose: a whole number, a share (1.0: all), None: as many as people do
    k: int | float | None = None

    paper = "DeYoung et al. 2020 (ERASER), IOU F1, macro"
    keys = (
        pooled_agreement_key("eraser_iou_f1_macro"),
        pooled_agreement_key("eraser_iou_precision_macro"),
        pooled_agreement_key("eraser_iou_recall_macro"),
    )

    def __post_init__(self) -> None:
        check_rationale_length(self.k)
        check_threshold_of_span_iou(self.threshold)

    def numbers(self, subject: Subject) -> Numbers:
        gold = (
            subject.gold
        )  # refuses a text without gold where no other has some; cut-off gold is not in it
        example = subject.example
        counts: list[Overlap] = []
        if example is not None and (example.gold or gold.any()):
            counts = spans_by_document(subject, example, self.k, self.threshold)

        averaged = AveragedF1(
            precision=sum_of_span_precisions(counts),
            recall=sum_of_span_recalls(counts),
        )
        return {
            "eraser_iou_f1_macro": averaged,
            "eraser_iou_precision_macro": averaged.precision,
            "eraser_iou_recall_macro": averaged.recall,
        }


def spans_by_document(
    subject: Subject,
    example: Example,
    k: Length,
    threshold: float,
) -> list[Overlap]:
    """How many spans of ERASER's tokens are chosen, gold and matching, document by document."""
    encoding = subject.explanation.encoding
    chosen_units = rationale_units(subject, k)
    counts = []
    for document in documents_of(example, encoding.segments):
        tokens = spans_of_eraser_tokens(encoding.texts[document.segment], document)
        units_by_token = units_of_eraser_tokens(document, tokens, subject.units)
        chosen_tokens = [chosen_units[units].any() for units in units_by_token]
        chosen = maximal_runs(np.array(chosen_tokens, dtype=bool))
        gold = gold_spans_of_document(example, document, tokens, encoding.segments)
        counts.append(matching_spans(chosen, gold, threshold))
    return counts


def gold_spans_of_document(
    example: Example,
    document: Document,
    tokens: Sequence[tuple[int, int]],
    segments: Sequence[str],
) -> list[frozenset[int]]:
    """The tokens of each gold span that has some in this document."""
    spans = []
    for span in example.gold:
        segment = segments.index(span.segment) if span.segment else 0
        if segment != document.segment:
            continue
        touched = []
        for number, (start, end) in enumerate(tokens):
            if start < span.end and span.start < end:
                touched.append(number)
        if touched:
            spans.append(frozenset(touched))
    return spans
