"""Does an explanation point where people pointed? Agreement of units with a human rationale.

micro: counts are summed over all texts, then divided (a `Share`). macro: a number per text, whose mean is reported. The
names of the numbers say which it is.

A text of which no gold unit is left (the rationale was cut off with the end of a long text, or comes after the target),
or in which people marked nothing, has nothing to find: its numbers do not exist, they are NaN, and it adds nothing to
what is pooled. Nothing else is NaN.
"""

from __future__ import annotations

from raison.metrics.plausibility.gold_ranking import (
    area_under_precision_recall_of_gold,
    mass_on_gold,
)
from raison.metrics.plausibility.matching_spans import (
    eraser_span_scores,
    gold_spans,
    matching_spans,
    maximal_runs,
)
from raison.metrics.plausibility.rationale_units import rationale_length
from raison.metrics.plausibility.unit_sets import (
    Overlap,
    f1,
    iou,
    overlap,
    precision,
    recall,
)

__all__ = [
    "Overlap",
    "area_under_precision_recall_of_gold",
    "eraser_span_scores",
    "f1",
    "gold_spans",
    "iou",
    "mass_on_gold",
    "matching_spans",
    "maximal_runs",
    "overlap",
    "precision",
    "rationale_length",
    "recall",
]
