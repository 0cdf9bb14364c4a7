"""Agreement of the order or the size of the scores with the gold units."""

from __future__ import annotations

from dataclasses import dataclass

from raison.core.parameters import check_choice, check_integer
from raison.metrics.base import Numbers, Subject, metric
from raison.metrics.plausibility.base import Plausibility, agreement_key, pooled_agreement_key
from raison.metrics.plausibility.gold_ranking import (
    AREAS,
    SIGNS,
    area_under_precision_recall_of_gold,
    mass_on_gold,
)
from raison.metrics.plausibility.rationale_units import check_rationale_length, most_important_units
from raison.metrics.plausibility.unit_sets import overlap, pooled_recall, precision

__all__ = ["Auprc", "GoldMass", "MicroRecallAtK", "PrecisionAtK", "Top1"]


@metric("auprc")
@dataclass(frozen=True)
class Auprc(Plausibility):
    """Area under precision and recall of the scores against the gold units; needs no length.

    step: average precision; trapezoid: what ERASER reports (see `area_under_precision_recall_of_gold`).
    """

    area: str = "step"  # step (average precision) or trapezoid (ERASER)

    paper = "DeYoung et al. 2020 (ERASER), AUPRC"
    keys = (agreement_key("auprc"),)

    def __post_init__(self) -> None:
        check_choice("area", self.area, AREAS)

    def numbers(self, subject: Subject) -> Numbers:
        area = area_under_precision_recall_of_gold(subject.scores, subject.gold, self.area)
        return {"auprc": area}


@metric("precision_at_k")
@dataclass(frozen=True)
class PrecisionAtK(Plausibility):
    """Which share of the k most important units is gold, averaged over texts.

    |top-k ∩ G| / |top-k|; a text of fewer than k units is taken whole. The ranking decides, also for a rationale: what
    it selects comes first. (Mask-LRP calls something else "precision@20": `micro_recall_at_k`.)
    """

    k: int | float | None = None  # a whole number, a share (1.0: all), None: as many as people do

    keys = (agreement_key("precision_at_k"),)

    def __post_init__(self) -> None:
        check_rationale_length(self.k)

    def numbers(self, subject: Subject) -> Numbers:
        chosen = most_important_units(subject, self.k)
        counts = overlap(chosen, subject.gold)
        return {"precision_at_k": precision(counts)}


@metric("micro_recall_at_k")
@dataclass(frozen=True)
class MicroRecallAtK(Plausibility):
    """Which share of all gold units is among the k most important ones of their texts: the "P@20" of Mask-LRP.

    Σ|top-k ∩ G| / Σ|G|, sums over texts; the paper prints it times 100.
    """

    k: int = 20  # units per text

    paper = "Song et al. 2024 (Mask-LRP), Table 2"
    keys = (pooled_agreement_key("micro_recall_at_k"),)

    def __post_init__(self) -> None:
        check_integer("k", self.k, 1)

    def numbers(self, subject: Subject) -> Numbers:
        chosen = most_important_units(subject, self.k)
        counts = overlap(chosen, subject.gold)
        return {"micro_recall_at_k": pooled_recall(counts)}


@metric("top_1")
@dataclass(frozen=True)
class Top1(Plausibility):
    """Whether the most important unit is gold.

    Of equal scores the first in the text is taken, as everywhere.
    """

    keys = (agreement_key("top_1"),)

    def numbers(self, subject: Subject) -> Numbers:
        counts = overlap(subject.best(1), subject.gold)
        return {"top_1": precision(counts)}


@metric("gold_mass")
@dataclass(frozen=True)
class GoldMass(Plausibility):
    """Which share of the score mass lies on gold units.

    Σ_{u∈G} m_u / Σ_u m_u with m = |score|, or its positive part. Where all mass is 0, the share of gold units.
    """

    sign: str = "absolute"  # absolute: sizes; positive: only what speaks for the target

    paper = "Tutek & Šnajder 2020, section 2.1"
    keys = (agreement_key("gold_mass"),)

    def __post_init__(self) -> None:
        check_choice("sign", self.sign, SIGNS)

    def numbers(self, subject: Subject) -> Numbers:
        share = mass_on_gold(subject.scores, subject.gold, self.sign)
        return {"gold_mass": share}
