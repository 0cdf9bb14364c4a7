"""Agreement of the chosen units with the gold units, whatever spans they form."""

from __future__ import annotations

from dataclasses import dataclass

from raison.metrics.base import Numbers, Subject, metric
from raison.metrics.plausibility.base import Plausibility, agreement_key, pooled_agreement_key
from raison.metrics.plausibility.rationale_units import (
    Length,
    check_rationale_length,
    rationale_units,
)
from raison.metrics.plausibility.unit_sets import (
    Overlap,
    f1,
    iou,
    overlap,
    pooled_f1,
    pooled_iou,
    pooled_precision,
    pooled_recall,
    precision,
    recall,
)

__all__ = ["TokenF1Macro", "TokenF1Micro", "TokenIou"]


@metric("token_f1_micro")
@dataclass(frozen=True)
class TokenF1Micro(Plausibility):
    """F1, precision and recall of the chosen units against the gold units, pooled over all texts.

    precision = Σ|A∩G| / Σ|A|, recall = Σ|A∩G| / Σ|G|, F1 = 2 Σ|A∩G| / (Σ|A| + Σ|G|), sums over texts. A is what the
    explanation selects, or its k highest scores.
    """

    # units to choose: a whole number, a share (1.0: all), None: as many as people do
    k: int | float | None = None

    paper = "DeYoung et al. 2020 (ERASER), token F1, micro"
    keys = (
        pooled_agreement_key("token_f1_micro"),
        pooled_agreement_key("token_precision_micro"),
        pooled_agreement_key("token_recall_micro"),
    )

    def __post_init__(self) -> None:
        check_rationale_length(self.k)

    def numbers(self, subject: Subject) -> Numbers:
        counts = overlap_of_chosen_units(subject, self.k)
        return {
            "token_f1_micro": pooled_f1(counts),
            "token_precision_micro": pooled_precision(counts),
            "token_recall_micro": pooled_recall(counts),
        }


@metric("token_f1_macro")
@dataclass(frozen=True)
class TokenF1Macro(Plausibility):
    """F1, precision and recall of the chosen units against the gold units of each text, averaged over texts.

    F1 = 2|A∩G| / (|A| + |G|) of one text; the mean of F1 is not the F1 of the means. A rationale that selects nothing
    has precision 0, as in ERASER.
    """

    # units to choose: a whole number, a share (1.0: all), None: as many as people do
    k: int | float | None = None

    paper = "DeYoung et al. 2020 (ERASER), token F1, macro"
    keys = (
        agreement_key("token_f1_macro"),
        agreement_key("token_precision_macro"),
        agreement_key("token_recall_macro"),
    )

    def __post_init__(self) -> None:
        check_rationale_length(self.k)

    def numbers(self, subject: Subject) -> Numbers:
        counts = overlap_of_chosen_units(subject, self.k)
        return {
            "token_f1_macro": f1(counts),
            "token_precision_macro": precision(counts),
            "token_recall_macro": recall(counts),
        }


@metric("token_iou")
@dataclass(frozen=True)
class TokenIou(Plausibility):
    """Intersection over union of the chosen and the gold units: the mean over texts, and pooled.

    IOU = |A∩G| / |A∪G|.
    """

    # units to choose: a whole number, a share (1.0: all), None: as many as people do
    k: int | float | None = None

    paper = "Vafa et al. 2021, Table 2 (mean over texts)"
    keys = (agreement_key("token_iou_macro"), pooled_agreement_key("token_iou_micro"))

    def __post_init__(self) -> None:
        check_rationale_length(self.k)

    def numbers(self, subject: Subject) -> Numbers:
        counts = overlap_of_chosen_units(subject, self.k)
        return {"token_iou_macro": iou(counts), "token_iou_micro": pooled_iou(counts)}


def overlap_of_chosen_units(subject: Subject, k: Length) -> Overlap:
    """Counts of the units of the rationale and the gold units."""
    return overlap(rationale_units(subject, k), subject.gold)
