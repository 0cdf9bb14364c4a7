"""Curves begin and end alike."""

from __future__ import annotations

import math

import numpy as np
import pytest

import raison
from raison.metrics.base import Subject
from tests.helpers.faithfulness import (
    TEXT,
    WORLDS,
    build,
    measure,
    tiny,
    world_of,
)

pytestmark = pytest.mark.usefixtures("precise")


# -- 3. curves ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", WORLDS)
def test_curves_begin_and_end_alike(family):
    """Everything removed is the same for all methods; deletion goes from p(x) to p(nothing), insertion back."""
    model = tiny(family)
    names = [
        "uniform",
        "random",
        "position",
        "leave_one_out",
        "input_x_gradient",
        "attention_rollout",
    ]
    for removal in ("delete", "mask_token"):
        explanations = [raison.explain(model, TEXT, name) for name in names]
        world = world_of(family, explanations[0], removal)
        p, nothing = world.p(world.units), world.p(())
        chosen = build("aopc", "lodds", "deletion", "insertion")
        found = measure(model, [Subject(e, model=model) for e in explanations], chosen, removal)
        merged = [{key: value for each in row for key, value in each.items()} for row in found]
        assert len({row["aopc_curve"][-1] for row in merged}) == 1  # the very same number
        assert len({row["lodds_curve"][-1] for row in merged}) == 1
        assert len({round(row["aopc"], 12) for row in merged}) > 1
        for row in merged:
            assert row["aopc_curve"][-1] == pytest.approx(p - nothing, abs=1e-12)
            assert row["lodds_curve"][-1] == pytest.approx(math.log(nothing / p), abs=1e-9)
            np.testing.assert_allclose(row["deletion_curve"][[0, -1]], [p, nothing], atol=1e-12)
            np.testing.assert_allclose(row["insertion_curve"][[0, -1]], [nothing, p], atol=1e-12)
