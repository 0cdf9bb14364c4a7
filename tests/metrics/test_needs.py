"""What a metric needs and does not find is said in a sentence."""

from __future__ import annotations

import pytest

import raison
from raison.core.errors import InputError, Unsupported
from raison.core.records import Example
from raison.core.registry import metrics
from raison.metrics.base import Subject
from raison.testing import tiny_model
from tests.helpers.faithfulness import (
    LITERAL,
    SANITY,
    SOFT,
    TEXT,
    WORDS,
    additive,
    assert_sentence,
    build,
    measure,
    numbers,
    scored,
    subject,
    tiny,
)

FAITHFUL = [*LITERAL, *SOFT, *SANITY]


pytestmark = pytest.mark.usefixtures("precise")


@pytest.mark.parametrize("name", [name for name in metrics if "gold" in metrics[name].needs])
def test_needs_gold(name):
    explanation = scored(tiny("bert"), TEXT, 0)
    for example in (None, Example(TEXT)):
        with pytest.raises(InputError, match="no human rationale") as caught:
            measure(tiny("bert"), [Subject(explanation, example, tiny("bert"))], build(name))
        assert_sentence(caught.value)


@pytest.mark.parametrize(
    "name", [name for name in metrics if metrics[name].needs & {"probability", "gradients"}]
)
def test_functions_have_no_probabilities_and_no_inside(name):
    model = raison.load(additive)
    with pytest.raises(Unsupported, match=name) as caught:
        measure(model, [subject(model, " ".join(WORDS), "random")], build(name))
    assert_sentence(caught.value)


def test_regressions_have_no_probabilities():
    model = tiny_model("bert", "classification", labels=1)
    explanation = scored(model, TEXT, 0)
    for name in ("lodds", *SOFT):
        with pytest.raises(Unsupported, match="probabilities") as caught:
            numbers(model, explanation, [name])
        assert_sentence(caught.value)
    found = numbers(model, explanation, ["completeness_gap", "aopc"])
    whole, nothing = (float(model.score([q])[0].value[0, 0]) for q in ends(explanation))
    assert found["aopc_curve"][-1] == pytest.approx(
        whole - nothing, abs=1e-9
    )  # of what it predicts


def ends(explanation):
    from raison.models.protocol import Question

    given = explanation.target.given(explanation.encoding)
    return [
        Question(explanation.encoding, explanation.target, keep[None])
        for keep in (given | True, given)
    ]


@pytest.mark.parametrize("name", SANITY)
def test_scores_from_elsewhere_cannot_be_made_again(name):
    with pytest.raises(Unsupported, match=f"{name} .*method") as caught:
        numbers(tiny("bert"), scored(tiny("bert"), TEXT, 0), [name])
    assert_sentence(caught.value)


@pytest.mark.parametrize("name", FAITHFUL)
def test_faithfulness_needs_a_model(name):
    with pytest.raises(Unsupported, match=f"{name} has to ask the model") as caught:
        measure(None, [Subject(scored(tiny("bert"), TEXT, 0))], build(name))
    assert_sentence(caught.value)


def test_unknown_removals_are_refused():
    explanation = scored(tiny("bert"), TEXT, 0)
    with pytest.raises(InputError, match="mask_token") as caught:
        numbers(tiny("bert"), explanation, ["aopc"], removal="eraser")
    assert_sentence(caught.value)
    model = raison.load(additive)
    with pytest.raises(Unsupported, match="deleted"):
        numbers(model, scored(model, " ".join(WORDS), 0, target=0), ["aopc"], removal="mask_token")
