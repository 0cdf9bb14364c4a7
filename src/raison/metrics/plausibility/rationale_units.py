"""The units that count as the rationale: what the explanation selects, or its highest scores."""

from __future__ import annotations

from math import floor

import numpy as np

from raison.core.parameters import check_in_range, check_integer
from raison.metrics.base import Subject

__all__ = [
    "Length",
    "check_rationale_length",
    "most_important_units",
    "rationale_length",
    "rationale_units",
]

Length = (
    int | float | None
)  # units: a whole number, a share of the text (1.0: all), None: as many as people mark


def check_rationale_length(k: Length) -> None:
    """Refuse what is no length of a rationale."""
    if isinstance(k, float):
        check_in_range("k as a share", k, 0, 1)
    elif k is not None:
        check_integer("k", k, 1)


def rationale_length(
    k: Length,
    units: int,
    gold: int,
    share: float | None = None,
) -> int:
    """How many units make a rationale, from 1 to `units`.

    k a whole number: so many. k a share in (0, 1]: so much of the text. None: the data set's mean share of gold units
    (ERASER's length of a rationale), or the number of gold units of this very text where that share is not known.
    Halves are rounded up.
    """
    count = gold
    if isinstance(k, int):
        count = k
    elif k is not None:
        count = round_half_up(k * units)
    elif share is not None:
        count = round_half_up(share * units)
    return min(max(count, 1), units)


def round_half_up(value: float) -> int:
    """The nearest whole number, of two equally near ones the larger."""
    return floor(value + 0.5)


def most_important_units(subject: Subject, k: Length) -> np.ndarray:
    """[u] the units with the highest scores."""
    units = len(subject.units)
    gold = int(subject.gold.sum())
    count = rationale_length(k, units, gold, subject.gold_share)
    return subject.best(count)


def rationale_units(subject: Subject, k: Length) -> np.ndarray:
    """[u] what the explanation selects, or else the units with the highest scores."""
    selected = subject.explanation.selected
    if selected is not None:
        return selected
    return most_important_units(subject, k)
