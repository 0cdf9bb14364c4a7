"""Which sets a ranking is tried on: its first units removed, or they alone kept."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from raison.metrics.base import Subject

__all__ = ["everything", "ladder", "only_first", "parts_of", "share_of", "without_first"]


def without_first(subject: Subject, counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """[n u] kept units when the `count` most important ones are removed, for each count."""
    return np.stack([~subject.best(int(count)) for count in counts])


def only_first(subject: Subject, counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """[n u] kept units when only the `count` most important ones are there."""
    return ~without_first(subject, counts)


def everything(subject: Subject) -> np.ndarray:
    """[2 u] the whole text, and nothing of it."""
    return np.array([[True], [False]]) & np.ones(len(subject.units), bool)


def parts_of(subject: Subject, shares: Sequence[float]) -> list[int]:
    """How many units the rationale has: as many as were selected, or a share of all, rounded up to at least one."""
    if subject.explanation.selected is not None:
        return [int(subject.explanation.selected.sum())]
    # 0.1 * 30 is 3.0000000000000004 in a computer
    return [max(1, math.ceil(share * len(subject.units) - 1e-9)) for share in shares]


def ladder(size: int, steps: int) -> np.ndarray:
    """[n] numbers of units from none to all, evenly spread, at most `steps` steps."""
    return np.unique(np.rint(np.linspace(0, size, min(steps, size) + 1)).astype(int))


def share_of(counts: np.ndarray, values: np.ndarray, points: int) -> np.ndarray:
    """[points + 1] a curve over counts of units, read at even shares of the text: so texts can be averaged."""
    return np.interp(np.linspace(0, counts[-1], points + 1), counts, values)
