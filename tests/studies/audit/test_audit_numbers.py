"""A number of every text, summed up."""

from __future__ import annotations

import numpy as np
import pytest

from raison.metrics.statistics import mean_interval
from raison.studies.audit.audit_numbers import Spread


def test_a_spread_is_a_mean_with_its_interval():
    values = [0.1, 0.9, 0.4, 0.35, float("nan"), 0.8]
    known = [v for v in values if v == v]
    found = Spread.of(values, seed=5)
    assert found.mean == pytest.approx(np.mean(known)) and (found.count, found.left_out) == (5, 1)
    assert found.deviation == pytest.approx(np.std(known, ddof=1))
    sure = mean_interval(known, level=0.95, seed=5)
    assert (found.low, found.high) == (sure.low, sure.high)
