"""How well classes are told."""

from __future__ import annotations

import numpy as np

__all__ = ["f1_of_classes"]


def f1_of_classes(predicted: np.ndarray, gold: np.ndarray, classes: int) -> float:
    """F1 of class 1 where there are two classes, else the mean over classes that are predicted or meant; 0 where
    nothing was found."""
    counted = [1] if classes <= 2 else sorted({*predicted.tolist(), *gold.tolist()})
    scores = []
    for each in counted:
        right = float(((predicted == each) & (gold == each)).sum())
        total = float((predicted == each).sum() + (gold == each).sum())
        scores.append(2 * right / total if total else 0.0)
    return float(np.mean(scores))
