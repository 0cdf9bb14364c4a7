"""Scores that know nothing of the model."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import raison
from raison.testing.precision import Float64
from tests.helpers.removed_units import model_of


@pytest.fixture(autouse=True)
def precise(request):
    real = "registry" in request.keywords  # real models are what they are: float32
    with nullcontext() if real else Float64():
        yield


def test_uniform_and_position():
    model = model_of("classifier")
    text = "The old town lies"
    assert raison.explain(model, text, "uniform").scores.tolist() == [0.25] * 4
    assert raison.explain(model, text, "position").scores.tolist() == [0.25, 0.5, 0.75, 1]
    found = raison.explain(model, text, "position(favours=start, power=2)")
    assert found.scores.tolist() == [1, 0.5625, 0.25, 0.0625] and found.removal is None
