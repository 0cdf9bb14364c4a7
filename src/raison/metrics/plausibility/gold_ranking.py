"""Measures of how a ranking puts gold units above others: area under precision-recall, mass on gold."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from raison.core.errors import InputError
from raison.core.parameters import check_choice
from raison.metrics.numbers import NAN

__all__ = ["AREAS", "SIGNS", "area_under_precision_recall_of_gold", "mass_on_gold"]

AREAS = ("step", "trapezoid")
SIGNS = ("absolute", "positive")


def area_under_precision_recall_of_gold(
    scores: ArrayLike,
    gold: ArrayLike,
    area: str = "step",
) -> float:
    """The area under precision as a function of recall, over all thresholds on the scores.

    Units of equal score are above a threshold together. step: Σ_i (R_i − R_{i−1}) P_i, average precision, as
    scikit-learn has it; trapezoid: Σ_i (R_i − R_{i−1}) (P_i + P_{i−1}) / 2 from (0, 1) on, which ERASER calls AUPRC and
    which is too high where points are few (Davis & Goadrich 2006). Equal scores give the share of gold units by step.
    """
    scores, gold = finite_scores_beside_gold(scores, gold)
    check_choice("area", area, AREAS)
    if not gold.any():
        return NAN

    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    falls = ranked[1:] != ranked[:-1]
    last = len(ranked) - 1
    last_of_equals = np.append(np.flatnonzero(falls), last)  # [i] of each group of equal scores
    all_hits = np.cumsum(gold[order])
    hits = all_hits[last_of_equals]

    heights = hits / (last_of_equals + 1)  # precision at each threshold
    recall = hits / gold.sum()
    widths = np.diff(recall, prepend=0.0)
    if area == "trapezoid":
        heights_before = np.append(1.0, heights[:-1])
        heights = (heights + heights_before) / 2
    return float(widths @ heights)


def mass_on_gold(scores: ArrayLike, gold: ArrayLike, sign: str = "absolute") -> float:
    """Σ_{u gold} m_u / Σ_u m_u, with m = |score| (absolute) or max(score, 0) (positive).

    Where no unit has any mass, no unit has more than another, so it is what equal scores give: the share of gold units.
    """
    scores, gold = finite_scores_beside_gold(scores, gold)
    check_choice("sign", sign, SIGNS)
    if not gold.any():
        return NAN

    mass = np.abs(scores)
    if sign == "positive":
        mass = np.maximum(scores, 0.0)
    if not mass.any():
        return float(gold.mean())
    mass = mass / mass.max()  # sums of huge scores stay finite, tiny ones do not vanish
    on_gold = mass[gold].sum()
    return float(on_gold / mass.sum())


def finite_scores_beside_gold(scores: ArrayLike, gold: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """[u] scores and gold units as arrays that fit each other."""
    scores = np.asarray(scores, np.float64)
    gold = np.asarray(gold, bool)
    if scores.shape != gold.shape or scores.ndim != 1:
        raise InputError(
            f"Scores of {scores.shape} units do not fit a rationale of {gold.shape}: use the same units."
        )
    if not np.isfinite(scores).all():
        raise InputError("Scores can't be NaN or infinite: leave such a text out.")
    return scores, gold
