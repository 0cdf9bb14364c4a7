"""Random numbers of the tests of metrics."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def generator():
    return np.random.default_rng(0)
