"""Units removed one by one and in windows."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import raison
from raison.models.protocol import TargetSpec
from raison.testing.precision import Float64
from tests.helpers.removed_units import model_of, questioned, tangled


@pytest.fixture(autouse=True)
def precise(request):
    real = "registry" in request.keywords  # real models are what they are: float32
    with nullcontext() if real else Float64():
        yield


def test_occlusion_by_loops():
    model = raison.load(tangled)
    batch, units, worth = questioned(model, "some very good films have a bad end")
    everything, size = worth(range(len(units))), len(units)
    for window, stride in ((1, 1), (2, 1), (3, 1), (3, 2), (3, 3), (4, 3), (20, 1)):
        expected = []
        for unit in range(size):
            drops = []
            for start in range(-10 * stride - 60, size):
                covered = range(start, start + min(window, size))  # a longer one is the text
                if start % stride == 0 and unit in covered:
                    drops.append(everything - worth([u for u in range(size) if u not in covered]))
            expected.append(np.mean(drops))
        found = raison.explain(
            model, batch.encodings[0].texts[0], f"occlusion(window={window}, stride={stride})"
        )
        np.testing.assert_allclose(found.scores, expected, atol=1e-9)


def test_windows_stay_in_their_text():
    """The last words of a question and the first of its context are no neighbours."""
    model = model_of("classifier")
    pair = raison.Example("The old town", "A dull story")
    found = raison.explain(model, pair, "occlusion(window=2)", target=1)
    _, units, worth = questioned(model, pair, target_spec=TargetSpec(target=1))
    assert [span[0] for span in units.spans] == [0, 0, 0, 1, 1, 1]
    everything = worth(range(6))
    drop = {
        gone: everything - worth(set(range(6)) - set(gone)) for gone in ((2,), (1, 2), (3,), (3, 4))
    }
    assert abs(found.scores[2] - (drop[2,] + drop[1, 2]) / 2) < 1e-9
    assert abs(found.scores[3] - (drop[3,] + drop[3, 4]) / 2) < 1e-9
