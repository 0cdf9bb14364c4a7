"""The rate of each step."""

from __future__ import annotations

from pathlib import Path

import pytest

from raison.core.errors import InputError
from raison.training.fit_settings import FitSettings


def test_rates():
    assert [FitSettings(Path(), 4, warm=0.0).rate(k) for k in range(4)] == [1, 0.75, 0.5, 0.25]
    assert [FitSettings(Path(), 4, warm=0.5, schedule="constant").rate(k) for k in range(4)] == [
        0.5,
        1,
        1,
        1,
    ]
    with pytest.raises(InputError, match="schedule is linear or constant"):
        FitSettings(Path(), 4, schedule="cosine")
    with pytest.raises(InputError, match="steps is a whole number from 1 up"):
        FitSettings(Path(), 0)
    with pytest.raises(InputError, match="clip is a number from 0 up"):
        FitSettings(Path(), 1, clip=-1.0)
