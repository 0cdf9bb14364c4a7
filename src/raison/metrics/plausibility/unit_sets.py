"""Overlap of two sets of units (or spans): precision, recall, F1 and IOU from their counts, also pooled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from raison.core.errors import InputError
from raison.metrics.numbers import NAN, Share

__all__ = [
    "Overlap",
    "f1",
    "iou",
    "overlap",
    "pooled_f1",
    "pooled_iou",
    "pooled_precision",
    "pooled_recall",
    "precision",
    "recall",
]


@dataclass(frozen=True)
class Overlap:
    """How many units (or spans) two sets have, and have in common."""

    both: int
    chosen: int
    gold: int

    @property
    def total(self) -> int:
        """The sizes of both sets, added up."""
        return self.chosen + self.gold

    @property
    def union(self) -> int:
        """How many are in one set at least."""
        return self.total - self.both


def overlap(chosen: ArrayLike, gold: ArrayLike) -> Overlap:
    """Counts of two masks [u]."""
    chosen = np.asarray(chosen, bool)
    gold = np.asarray(gold, bool)
    if chosen.shape != gold.shape or chosen.ndim != 1:
        raise InputError(
            f"A choice of {chosen.shape} units does not fit a rationale of {gold.shape}: use the same units."
        )
    both = chosen & gold
    return Overlap(
        both=int(both.sum()),
        chosen=int(chosen.sum()),
        gold=int(gold.sum()),
    )


# -- of one text --------------------------------------------------------------------------------------------


def precision(counts: Overlap) -> float:
    """Which share of what was chosen is gold; 0 for an empty choice, as in ERASER and scikit-learn."""
    return ratio_of_units_in_text(counts.both, counts.chosen, counts)


def recall(counts: Overlap) -> float:
    """Which share of what is gold was chosen."""
    return ratio_of_units_in_text(counts.both, counts.gold, counts)


def f1(counts: Overlap) -> float:
    """2 · both / (chosen + gold), the harmonic mean of precision and recall."""
    return ratio_of_units_in_text(2 * counts.both, counts.total, counts)


def iou(counts: Overlap) -> float:
    """Intersection over union, the Jaccard index."""
    return ratio_of_units_in_text(counts.both, counts.union, counts)


def ratio_of_units_in_text(part: int, whole: int, counts: Overlap) -> float:
    """part / whole; NaN in a text without gold, 0 where the whole is 0."""
    if not counts.gold:
        return NAN
    return ratio_of_units_or_zero(part, whole)


def ratio_of_units_or_zero(part: float, whole: float) -> float:
    """part / whole; 0 where the whole is 0."""
    return part / whole if whole else 0.0


# -- pooled over texts --------------------------------------------------------------------------------------


def pooled_precision(counts: Overlap) -> Share:
    """What one text adds to the pooled precision."""
    return share_of_units_in_text(counts.both, counts.chosen, counts)


def pooled_recall(counts: Overlap) -> Share:
    """What one text adds to the pooled recall."""
    return share_of_units_in_text(counts.both, counts.gold, counts)


def pooled_f1(counts: Overlap) -> Share:
    """What one text adds to the pooled F1."""
    return share_of_units_in_text(2 * counts.both, counts.total, counts)


def pooled_iou(counts: Overlap) -> Share:
    """What one text adds to the pooled IOU."""
    return share_of_units_in_text(counts.both, counts.union, counts)


def share_of_units_in_text(part: int, whole: int, counts: Overlap) -> Share:
    """What one text adds to a pooled number: nothing where nothing was to be found."""
    if not counts.gold:
        return Share(0, 0)
    return Share(part, whole)
