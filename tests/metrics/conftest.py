"""Fixtures of the tests of metrics."""

from __future__ import annotations

import numpy as np
import pytest

from raison.testing.precision import Float64


@pytest.fixture
def precise():
    with Float64():
        yield


@pytest.fixture
def generator():
    return np.random.default_rng(0)
