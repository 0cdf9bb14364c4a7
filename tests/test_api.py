"""What a user may give, and what comes back."""

from __future__ import annotations

import pytest

import raison
from raison.core.errors import InputError
from raison.testing import tiny_model

TEXT = "The old town lies on a hill"


def test_a_text_with_nothing_to_explain_is_refused_in_a_list_too():
    model = tiny_model("gpt2", "causal")
    for text in ("A", ["A", TEXT]):
        with pytest.raises(InputError, match="nothing to explain"):
            raison.explain(model, text)


def test_one_or_many():
    model = tiny_model("bert", "classification")
    assert isinstance(raison.explain(model, TEXT), raison.Explanation)
    assert isinstance(raison.explain(model, [TEXT]), list)
    assert isinstance(raison.explain(model, iter([TEXT])), list)
    assert isinstance(raison.explain(model, raison.Example(TEXT, target="all")), list)
    assert isinstance(raison.explain(tiny_model("bert", "tagging"), TEXT), list)


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": 5},
        {"method": ["random"]},
        {"removal": 5},
        {"seed": -1},
        {"units": 7},
        {"output": 3},
    ],
)
def test_wrong_kinds_of_options(wrong):
    with pytest.raises(raison.RaisonError):
        raison.explain(tiny_model("bert", "classification"), TEXT, **wrong)


@pytest.mark.parametrize("text", [None, 3, b"bytes", ("a", "b", "c"), [], {"premise": "a"}, [None]])
def test_wrong_kinds_of_text(text):
    with pytest.raises(InputError):
        raison.explain(tiny_model("bert", "classification"), text)


@pytest.mark.parametrize("context", ["\x00", "\u200b"])
def test_a_context_without_a_word_that_is_read_is_refused(context):
    with pytest.raises(InputError, match="context"):
        raison.explain(tiny_model("bert", "qa"), ("who wrote it", context))
