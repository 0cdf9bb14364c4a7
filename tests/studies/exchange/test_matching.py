"""Explanations from elsewhere are about their own texts."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError
from raison.core.records import Example
from raison.studies.evaluate_methods import evaluate
from raison.testing import tiny_model
from tests.helpers.evaluated import made_file


@pytest.fixture(scope="module")
def model():
    return tiny_model("bert", "classification")


def test_an_explanation_is_about_its_own_text(model, tmp_path):
    """The number of a line is no id: a text of the data with that id was explained by the tokens of another."""
    data = [Example("a lovely film", id="1"), Example("nobody saw the film", id="0")]
    path = tmp_path / "made.jsonl"
    lines = [
        {"text": "a lovely film", "tokens": ["a", "lovely", "film"], "scores": [0, 1, 2]},
        {
            "text": "nobody saw the film",
            "tokens": ["nobody", "saw", "the", "film"],
            "scores": [3, 4, 5, 6],
        },
    ]
    found = evaluate(model, data, metrics=["aopc"], explanations=made_file(path, *lines))
    assert {seen.id: [score for _, score in seen.units["elsewhere"]] for seen in found.texts} == {
        "1": [0, 1, 2],
        "0": [3, 4, 5, 6],
    }
    bare = [
        {"tokens": line["tokens"], "scores": line["scores"]} for line in lines
    ]  # the order is that of the data
    again = evaluate(model, data, metrics=["aopc"], explanations=made_file(path, *bare))
    assert again.cells == found.cells


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([{"id": "a", "tokens": ["the", "nice", "movie"], "scores": [1, 2, 3]}], "2 of 3 tokens .*'nice'.*not stand"),
        ([{"id": "a", "text": "another one", "tokens": ["another"], "scores": [1]}], "is about 'another one'"),
        ([{"id": "x", "text": "another one", "tokens": ["another"], "scores": [1]}], "has no text 'another one'"),
        ([{"id": "x", "tokens": ["the"], "scores": [1]}], "texts has no such text"),
        ([{"id": "a", "tokens": ["the"], "scores": [1]}] * 2, "explains 'a' twice"),
        ([{"id": i, "method": m, "tokens": ["the"], "scores": [1]} for m, i in ("ra", "rb", "sa")], "s has no .*'b'"),
    ],
)  # fmt: skip
def test_explanations_of_other_texts_are_refused(model, records, why, tmp_path):
    data = [Example("the film is lovely", id="a"), Example("the end", id="b")]
    with pytest.raises(InputError, match=why):
        evaluate(
            model, data, metrics=["aopc"], explanations=made_file(tmp_path / "made.jsonl", *records)
        )


def test_what_explanations_leave_open_is_told(model, tmp_path):
    data = [Example("the café is a lovely place", id="a"), Example("the end", id="b")]
    tokens = ["[CLS]", "the", "cafe", "is", "a", "lovely", "place", "[SEP]"]
    path = made_file(
        tmp_path / "made.jsonl", {"id": "a", "tokens": tokens, "scores": [9, 1, 2, 3, 4, 5, 6, 9]}
    )
    found = evaluate(model, data, metrics=["aopc"], explanations=path)
    assert "there are explanations of 1 of the 2 texts" in found.notes
    assert "1 token of the explanations, found nowhere in the texts, did not count" in found.notes
    with pytest.raises(InputError, match="leave one of them away"):
        evaluate(model, data, ["random"], ["aopc"], explanations=path)
