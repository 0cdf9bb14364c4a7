"""What a model says without some words or heads; heads that are off, against the weights."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import raison
from raison.core.errors import Unsupported
from raison.studies.what_if import explain_without_heads, heads_of_answer, name_of_answer_instead
from raison.testing import tiny_hf, tiny_model
from tests.helpers.web_client import TEXT


def test_a_head_that_is_off_is_the_head_times_zero():
    """Against the weights: the output projection of a head set to zero gives the same answer."""
    model = raison.load(*tiny_hf("bert", "classification"))
    found = raison.explain(model, TEXT)
    told = heads_of_answer(model, found)
    method = raison.core.registry.methods.build("leave_one_out")
    after = explain_without_heads(model, method, found, [(1, 0)]).diagnostics
    hf = copy.deepcopy(model.hf)
    attention = hf.bert.encoder.layer[1].attention
    width = attention.self.attention_head_size
    attention.output.dense.weight.data[:, :width] = 0
    literal = raison.load(hf, model.tokenizer)
    expected = literal.predict(literal.encode(raison.api.examples_of(TEXT)))[0]
    value = dict(zip(model.labels, [0] * 9, strict=False)) and dict(expected.top)[found.target.text]
    assert after["value_without_heads"] == pytest.approx(value, rel=1e-6) and len(told.maps) == 2


def test_a_label_among_several_is_yes_or_no():
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.config.problem_type = "multi_label_classification"
    model = raison.load(hf, tokenizer)
    target = model.definition.target_of(1)
    assert name_of_answer_instead(model, target, np.array([0])) == f"not {target.text}"
    assert name_of_answer_instead(model, target, np.array([1])) == target.text


def test_heads_that_stay_on_are_not_called_off():
    """deeplift and value zeroing run passes of their own, and some families attend where nobody reaches."""
    model = tiny_model("bert", "classification")
    found = raison.explain(model, "a good film", "gradient_norm")
    every = [(layer, head) for layer in range(2) for head in range(2)]
    off = explain_without_heads(
        model, raison.core.registry.methods.build("gradient_norm"), found, every
    )
    assert off.diagnostics["value_without_heads"] != off.diagnostics["value_before"]
    for name in ("deeplift", "value_zeroing"):
        with pytest.raises(Unsupported, match="without some heads"):
            explain_without_heads(model, raison.core.registry.methods.build(name), found, every)
    other = tiny_model("deberta", "classification")
    assert other.runner.bypasses_tap
    with pytest.raises(Unsupported, match="not switched off"):
        explained = raison.explain(other, "a good film")
        explain_without_heads(
            other, raison.core.registry.methods.build("gradient_norm"), explained, every
        )
