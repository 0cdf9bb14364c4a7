"""Explanations of awkward texts, and results of a tiny model."""

from __future__ import annotations

import pytest

import raison
from raison.studies.evaluate_methods import evaluate
from raison.testing import tiny_model
from tests.helpers.scored_explanations import CASES


@pytest.fixture(params=CASES)
def explanation(request):
    return CASES[request.param]()


@pytest.fixture(scope="session")
def explanations():
    model = tiny_model("bert", "classification")
    text = "a lovely film & 100% of {it} is_dull"
    return [raison.explain(model, text, method) for method in ("leave_one_out", "gradient_norm")]


@pytest.fixture(scope="session")
def evaluation():
    texts = ["a lovely film", "a dull story", "it is very warm"]
    return evaluate(
        tiny_model("bert", "classification"),
        texts,
        ["leave_one_out", "random"],
        ["aopc", "sufficiency"],
    )
