"""F1 of a classifier: of the second of two classes, else the mean over classes."""

from __future__ import annotations

import numpy as np

__all__ = ["f1_of_classes"]


def f1_of_classes(predicted: np.ndarray, gold: np.ndarray, classes: int) -> float:
    """F1 of class 1 where there are two classes, else the mean over classes that are predicted or meant; 0 where
    nothing was found."""
    counted = [1]
    if classes > 2:
        counted = np.union1d(predicted, gold).tolist()
    scores = []
    for each in counted:
        is_predicted = predicted == each
        is_gold = gold == each
        right = float((is_predicted & is_gold).sum())
        total = float(is_predicted.sum() + is_gold.sum())
        score = 0.0
        if total:
            score = 2 * right / total
        scores.append(score)
    return float(np.mean(scores))
