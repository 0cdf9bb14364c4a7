"""Random sets of units are fair and the same for all methods."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.faithfulness import (
    LONG,
    scored,
    sets_of,
    tiny,
)

pytestmark = pytest.mark.usefixtures("precise")


def test_random_sets_are_fair_and_the_same_for_all_methods():
    model = tiny("bert")
    one, other = (scored(model, LONG, seed) for seed in (1, 2))
    sets = sets_of(one, model, "infidelity(samples=512)")
    assert len(sets) == 512 and sets == sets_of(other, model, "infidelity(samples=512)")
    drawn = np.array([[u in gone for u in range(len(one.units))] for gone in sets])
    assert np.abs(drawn.mean(0) - 0.5).max() < 0.1  # 4.5 standard deviations
    pairs = np.corrcoef(drawn.T) - np.eye(len(one.units))
    assert np.abs(pairs).max() < 0.25
