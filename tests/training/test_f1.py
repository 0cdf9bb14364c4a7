"""F1 of classes."""

from __future__ import annotations

import numpy as np
import pytest


def test_f1_is_that_of_scikit_learn():
    from sklearn.metrics import f1_score

    from raison.training.f1 import f1_of_classes

    rng = np.random.default_rng(0)
    for classes, there in ((2, 2), (4, 4), (4, 2)):  # at last two classes that nobody says or means
        said, gold = rng.integers(there, size=(2, 200))
        average = "binary" if classes == 2 else "macro"
        assert f1_of_classes(said, gold, classes) == pytest.approx(
            f1_score(gold, said, average=average)
        )
    assert f1_of_classes(np.zeros(5, int), np.zeros(5, int), 2) == 0
    absent = f1_of_classes(np.array([0, 0, 2, 1]), np.array([0, 0, 0, 1]), 3)
    assert absent == pytest.approx(
        f1_score([0, 0, 0, 1], [0, 0, 2, 1], average="macro", labels=[0, 1, 2], zero_division=0)
    )
