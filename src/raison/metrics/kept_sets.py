"""Which sets a ranking is tried on: its first units removed, or they alone kept."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from raison.metrics.base import Subject

__all__ = [
    "curve_at_even_shares",
    "even_counts_of_units",
    "keep_most_important",
    "rationale_sizes",
    "remove_most_important",
    "set_of_all_units",
    "whole_text_and_nothing",
]


def remove_most_important(subject: Subject, counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """[n u] kept units when the `count` most important ones are removed, for each count."""
    return ~keep_most_important(subject, counts)


def keep_most_important(subject: Subject, counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """[n u] kept units when only the `count` most important ones are there, for each count."""
    kept = [subject.best(int(count)) for count in counts]
    return np.stack(kept)


def set_of_all_units(subject: Subject) -> np.ndarray:
    """[1 u] the set of all units."""
    size = len(subject.units)
    return np.ones((1, size), bool)


def whole_text_and_nothing(subject: Subject) -> np.ndarray:
    """[2 u] the whole text, and nothing of it."""
    everything = set_of_all_units(subject)
    return np.concatenate([everything, ~everything])


def rationale_sizes(subject: Subject, shares: Sequence[float]) -> list[int]:
    """How many units the rationale has: as many as were selected, or a share of all, rounded up to at least one."""
    selected = subject.explanation.selected
    if selected is not None:
        return [int(selected.sum())]

    size = len(subject.units)
    sizes = []
    for share in shares:
        # 0.1 * 30 is 3.0000000000000004 in a computer
        count = math.ceil(share * size - 1e-9)
        sizes.append(max(1, count))
    return sizes


def even_counts_of_units(size: int, steps: int) -> np.ndarray:
    """[n] numbers of units from none to all, evenly spread, at most `steps` steps."""
    points = min(steps, size) + 1
    even_counts = np.linspace(0, size, points)
    counts = np.rint(even_counts).astype(int)
    return np.unique(counts)


def curve_at_even_shares(counts: np.ndarray, values: np.ndarray, points: int) -> np.ndarray:
    """[points + 1] a curve over counts of units, read at even shares of the text: so texts can be averaged."""
    size = counts[-1]
    even_counts = np.linspace(0, size, points + 1)
    return np.asarray(np.interp(even_counts, counts, values))
