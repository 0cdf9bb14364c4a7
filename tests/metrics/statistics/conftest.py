"""Random numbers for the tests of statistics."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def generator():
    return np.random.default_rng(0)
