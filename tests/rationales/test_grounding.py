"""Answers over passages: what they rest on."""

from __future__ import annotations

import pytest

import raison
from raison.core.errors import InputError
from raison.testing import tiny_model
from tests.helpers.searches import (
    About,
    reader,
    verify,
)

# -- H. answers over passages ------------------------------------------------------------------------------------


LIGHTHOUSE = (
    "The lighthouse on Gull Island was built in 1874. It is painted red and white. Its lamp can be seen from twenty "
    "miles away.",
    "Anna Brandt was the last keeper of the lighthouse. She lived there with her two dogs until 1962. After that the "
    "lamp was automated.",
    "A ferry leaves for Gull Island every morning at nine. The crossing takes forty minutes. Tickets are sold on "
    "board.",
)


def test_an_answer_names_its_passages(precise):
    passages = {
        "town": "It lies on a hill. It is old.",
        "film": "The film is good.",
        "river": "It begins there.",
    }
    found = raison.ground(reader(), "Where is it?", passages, generate=3)
    about = found.grounding
    assert verify(reader(), About(found.encoding, found.target, found.units, found)).sufficient
    assert [passage.name for passage in about.passages] == list(passages)
    kept = found.units.keep(found.selected)
    for passage, text in zip(about.passages, passages.values(), strict=True):
        assert found.encoding.texts[0][passage.start : passage.end] == text
        inside = (found.encoding.start >= passage.start) & (found.encoding.end <= passage.end)
        assert passage.selected == bool((inside & kept & (found.units.of >= 0)).any())
        assert isinstance(passage.necessary, bool)
    assert about.needs_context == bool(found.selected.any()) and about.question == "Where is it?"
    assert about.statement.endswith(".") and found.units.level == "sentence"
    assert raison.Explanation.from_json(found.to_json()) == found


def test_an_answer_may_be_given(precise):
    found = raison.ground(
        reader(), "Where is it?", ["It lies on a hill.", "It is old."], answer="on a hill"
    )
    assert found.target.text.strip() == "on a hill"
    assert [passage.name for passage in found.grounding.passages] == ["1", "2"]


def test_a_passage_stands_where_it_stands():
    """Its words may also occur in the instruction above it."""
    for text in ("few words", "Answer the question"):
        found = raison.ground(reader(), "What?", [text], generate=2)
        (slot,) = found.encoding.slots
        whole = found.encoding.texts[0]
        assert whole[: slot.start].endswith(".\n\n") and whole[slot.end :].startswith(
            "\n\nQuestion"
        )


def test_a_reader_of_spans_is_asked_too():
    model = tiny_model("bert", "qa")
    found = raison.ground(model, "Where is it?", ["It lies on a hill.", "It is old."])
    assert found.target.kind == "span"
    assert verify(model, About(found.encoding, found.target, found.units, found)).sufficient


@pytest.mark.parametrize(
    ("question", "passages"),
    [("", ["A town."]), ("  ", ["A town."]), (None, ["A town."])]
    + [("What?", passages) for passages in (["A town.", " "], "A town.", [], {"a": ""}, [None])],
)
def test_questions_without_something_to_answer_from(question, passages):
    for model in (reader(), tiny_model("bert", "qa")):
        with pytest.raises(InputError):
            raison.ground(model, question, passages)


def test_a_classifier_does_not_answer():
    with pytest.raises(InputError, match="answer"):
        raison.ground(tiny_model("bert", "classification"), "What?", ["A town."])


@pytest.mark.registry
def test_an_answer_rests_on_one_sentence(smollm2):
    found = raison.ground(smollm2, "What colour is the lighthouse?", LIGHTHOUSE)
    about = found.grounding
    assert [name for name, kept in zip(found.units.names, found.selected, strict=True) if kept] == [
        "It is painted red and white."
    ]
    assert [passage.selected for passage in about.passages] == [True, False, False]
    assert about.passages[0].necessary and about.needs_context
    assert "red and white" in about.answer and about.statement.startswith("The answer rests on 1 ")
    assert verify(smollm2, About(found.encoding, found.target, found.units, found), 1e-3).sufficient


@pytest.mark.registry
def test_an_answer_that_needs_no_context(smollm2):
    found = raison.ground(smollm2, "What is the capital of France?", LIGHTHOUSE)
    about = found.grounding
    assert "Paris" in about.answer and not about.needs_context and not found.selected.any()
    assert "no context" in about.statement
