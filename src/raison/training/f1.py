"""How well classes are told."""

from __future__ import annotations

import numpy as np

__all__ = ["f1_of"]


def f1_of(said: np.ndarray, gold: np.ndarray, classes: int) -> float:
    """F1 of class 1 where there are two classes, else the mean over classes that are said or meant; 0 where nothing was
    found."""
    wanted = [1] if classes <= 2 else sorted({*said.tolist(), *gold.tolist()})
    found = []
    for each in wanted:
        both = float(((said == each) & (gold == each)).sum())
        total = float((said == each).sum() + (gold == each).sum())
        found.append(2 * both / total if total else 0.0)
    return float(np.mean(found))
