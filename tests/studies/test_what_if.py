"""Heads that are switched off, against the weights."""

from __future__ import annotations

import copy

import pytest

import raison
from raison.studies.what_if import explain_without_heads, heads_of_answer
from raison.testing import tiny_hf
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
