"""Points of a path are made when they run."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch

import raison
from raison.methods.base import Batch
from raison.methods.baselines import Baseline, WordEmbeddings
from raison.methods.paths import EmbeddingPath, slopes_at
from raison.testing import tiny_model
from raison.testing.precision import Float64
from tests.oracles.paths import TEXT


@pytest.fixture(autouse=True)
def precise(request):
    """Float64 all the way, but for real models, which are float32."""
    with nullcontext() if request.node.get_closest_marker("registry") else Float64():
        yield


def test_points_are_made_one_at_a_time():
    """The points of a path are asked for when they run, and never held together."""
    model = tiny_model("bert", "classification")
    made = []

    class Watched(EmbeddingPath):
        def at(self, place):
            made.append(place)
            return super().at(place)

    encoding = model.encode([raison.Example(TEXT)])[0]
    target = model.resolve_targets(encoding)[0][1]
    words = WordEmbeddings(model)
    path = Watched(
        Baseline(words, "mask").rows(encoding, target.free(encoding)), words.of(encoding)
    )
    small = type(model.budget)(tokens=3 * len(encoding))
    model.budget = small
    batch = Batch([encoding], [target], [])
    places = list(np.linspace(0, 1, 9))
    seen = []
    for slope in slopes_at(model, batch, [0] * 9, [path] * 9, places):
        seen.append(len(made))
        assert places[slope.point] in made
    assert seen == [3, 3, 3, 6, 6, 6, 9, 9, 9]
    assert torch.equal(path.at(0.0), path.start) and torch.equal(path.at(1.0), path.end)
