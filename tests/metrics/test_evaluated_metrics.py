"""Metrics where there is little to measure."""

from __future__ import annotations

import numpy as np
import pytest

import raison
from raison.core.errors import Unsupported
from raison.core.records import Example, Span
from raison.metrics.randomisation import cascading_randomisation
from raison.models.load import load
from raison.studies.evaluate_methods import evaluate
from raison.testing import tiny_model

LONG = "The plot was okay I guess, and the rest went by as these things do on a quiet evening. Superb acting."


def counting(texts: list[str]) -> np.ndarray:
    """How often a text says superb and okay: a model whose right explanation is known."""
    return np.array([[3.0 * t.count("Superb") + 1.0 * t.count("okay"), 0.0] for t in texts])


def test_shared_blocks_are_shuffled_behind_the_head():
    """ALBERT's blocks stand in a list of one: no number of the config is its length."""
    model = tiny_model("albert", "classification")
    plain = dict(model.hf.named_parameters())
    moved = [
        {
            name
            for name, value in other.hf.named_parameters()
            if not np.array_equal(value.detach(), plain[name].detach())
        }
        for other in cascading_randomisation(model, 3, 0)
    ]
    assert moved[0] and all("classifier" in name for name in moved[0] if "pooler" not in name)
    assert any("albert_layers" in name for name in moved[-1]) and moved[0] < moved[-1]


def test_gold_that_was_cut_off_shortens_nobodys_rationale():
    model = tiny_model("bert", "classification")
    there = Example("good bad good bad", id="a", label="negative", gold=(Span(0, 4), Span(9, 13)))
    gone = Example("word " * 400 + "good", id="b", label="negative", gold=(Span(2000, 2004),))
    alone = evaluate(model, [there], ["leave_one_out"], ["token_f1_macro"])
    beside = evaluate(model, [there, gone], ["leave_one_out"], ["token_f1_macro"])
    assert beside.cell("leave_one_out", "token_f1_macro").each == (
        alone.cell("leave_one_out", "token_f1_macro").each[0],
        None,
    )


def test_a_number_is_no_decision():
    one = load(lambda texts: np.array([float(len(t)) for t in texts]))
    for name in ("decision_flip", "decision_flip_first"):
        with pytest.raises(Unsupported, match="waits for another decision"):
            evaluate(one, ["a good film", "bad"], ["leave_one_out"], [name])
    flips = evaluate(load(counting), [LONG], ["leave_one_out"], ["decision_flip_first"])
    assert flips.cell("leave_one_out", "decision_flip_first").value is not None


def test_soft_metrics_of_a_first_written_token():
    from raison.metrics.base import Subject
    from raison.metrics.soft import soft_token_weights

    model = tiny_model("gpt2", "causal")
    first = raison.explain(model, "The old town", "leave_one_out", target="all", units="token")[0]
    assert not len(first.units)
    assert (soft_token_weights(Subject(first, model)) == 1).all()
