"""Every number of a metric by another route: literal code on a separate model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import raison
from tests.helpers.faithfulness import (
    LITERAL,
    LONG,
    TEXT,
    WORLDS,
    expected,
    numbers,
    scored,
    tiny,
    world_of,
)

pytestmark = pytest.mark.usefixtures("precise")


def assert_literal(family, explanation, removal="delete", samples=16):
    model, world = tiny(family), world_of(family, explanation, removal)
    names = [f"infidelity(samples={samples})" if name == "infidelity" else name for name in LITERAL]
    found = numbers(model, explanation, names, removal)
    wanted = expected(world, explanation, model, samples)
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        np.testing.assert_allclose(
            found[key], value, rtol=1e-9, atol=1e-9 * abs(world.p(world.units)), err_msg=key
        )


# -- 1. every number by another route ----------------------------------------------------------------------


@pytest.mark.parametrize("removal", ["delete", "mask", "mask_token"])
@pytest.mark.parametrize("units", ["word", "token"])
@pytest.mark.parametrize("family", WORLDS)
def test_literal(family, units, removal):
    """Random scores and a rationale, one forward pass for each set."""
    model = tiny(family)
    assert removal in model.removals
    assert_literal(family, scored(model, TEXT, 3, units=units), removal)
    enough = (
        "drop(nats=0.05)" if family == "bert" else "argmax"
    )  # this classifier needs no word for its first choice
    rationale = raison.rationalize(model, TEXT, units=units, removal=removal, sufficient=enough)
    assert 0 < rationale.selected.sum() < len(rationale.units)
    assert_literal(family, rationale, removal)


@pytest.mark.parametrize("family", WORLDS)
def test_literal_of_ties_and_long_texts(family):
    """Equal scores are ranked as they stand in the text; areas of many units are asked at twenty steps."""
    model = tiny(family)
    whole = scored(model, LONG, 5)
    assert len(whole.units) > 20
    assert_literal(family, whole)
    assert_literal(family, replace(whole, scores=whole.scores.round()))


@pytest.mark.parametrize("share", ["none", "one", "some", "all", "without order"])
def test_literal_of_selections(share):
    found = scored(tiny("bert"), TEXT, 4)
    size = len(found.units)
    chosen = {"none": [], "one": [size - 1], "all": list(range(size))}.get(share, [1, 5, 2])
    selected = np.isin(np.arange(size), chosen)
    order = None if share == "without order" else np.array(chosen[::-1], np.int64)
    assert_literal("bert", replace(found, selected=selected, order=order))


@pytest.mark.parametrize("target", [0, 1, 2])
def test_literal_of_one_unit(target):
    """Whether the only word speaks for the label or against it."""
    assert_literal("bert", scored(tiny("bert"), "Good", 0, target=target))


@pytest.mark.parametrize("output", ["logit", "log_prob", "prob"])
def test_literal_of_other_outputs(output):
    """f is in the unit of the explanation; p is a probability whatever that unit is."""
    assert_literal("bert", scored(tiny("bert"), TEXT, 6, target=2, output=output))


def test_literal_of_a_contrast():
    """The probability of the one outcome among both."""
    assert_literal("bert", scored(tiny("bert"), TEXT, 6, target=0, contrast=1))


def test_literal_of_pairs():
    assert_literal("bert", scored(tiny("bert"), (TEXT, "A dull story."), 6))


def test_literal_of_written_text():
    """Several tokens: the product of their probabilities, however small it is."""
    explanation = scored(tiny("gpt2"), TEXT, 6, target=" good actors")
    assert len(explanation.target.ids) > 1
    assert_literal("gpt2", explanation)
