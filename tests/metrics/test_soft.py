"""Soft sufficiency and comprehensiveness against literal code, and their random draws."""

from __future__ import annotations

import numpy as np
import pytest

from raison.metrics.base import Subject
from tests.helpers.faithfulness import (
    LONG,
    SOFT,
    TEXT,
    TEXTS,
    build,
    measure,
    numbers,
    scored,
    subject,
    tiny,
    world_of,
)
from tests.oracles import metrics as literal

pytestmark = pytest.mark.usefixtures("precise")


@pytest.mark.parametrize("units", ["word", "token"])
@pytest.mark.parametrize(
    "family, text, target",
    [("bert", TEXT, 1), ("gpt2", LONG[:45], None), ("gpt2", TEXT, " good actors")],
    ids=["label", "token", "text"],
)
def test_literal_soft(family, text, target, units):
    """The same draws, one forward pass for each of them."""
    model = tiny(family)
    for scores in (3, None):
        explanation = scored(model, text, scores, units=units, target=target)
        found = numbers(model, explanation, SOFT)
        draws = Subject(explanation, model=model).generator("soft")
        wanted = literal.soft(world_of(family, explanation, "delete"), explanation, draws, 8)
        assert (
            0 < wanted["soft_sufficiency"] < 1 and 0 < wanted["soft_comprehensiveness"] < 1
        )  # nothing trivial
        for key, value in wanted.items():
            assert abs(found[key] - value) < 1e-9, key


def test_shuffled_weights_forget():
    """With all weights shuffled, a gradient says something else: beaten by no control (which stays at 1)."""
    model = tiny("bert")
    found = [
        measure(model, [subject(model, text, "input_x_gradient")], build("randomisation"))[0][0][
            "randomisation"
        ]
        for text in TEXTS
    ]
    assert np.mean(found) < 0.7


def test_another_seed_gives_other_draws():
    model = tiny("bert")
    explanation = scored(model, TEXT, 3, target=1)
    names = ["infidelity", *SOFT]
    one, other = (numbers(model, explanation, names, seed=seed) for seed in (0, 1))
    assert all(one[key] != other[key] for key in one)
