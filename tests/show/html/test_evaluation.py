"""The page of an evaluation."""

from __future__ import annotations

from raison.show.html.evaluation import evaluation_page
from raison.studies.evaluate_methods import evaluate
from raison.testing import tiny_model


def test_the_curve_of_randomised_blocks_is_named():
    model = tiny_model("bert", "classification")
    found = evaluate(model, ["a good film"], ["gradient_norm"], ["randomisation", "aopc"])
    told = evaluation_page(found)
    assert (
        "randomisation by share of randomised blocks" in told and "aopc by share of units" in told
    )
