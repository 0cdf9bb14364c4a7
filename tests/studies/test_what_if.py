"""What a model says without some words or heads."""

from __future__ import annotations

import numpy as np
import pytest

import raison
from raison.core.errors import Unsupported
from raison.studies.what_if import outcome
from raison.testing import tiny_hf, tiny_model


def test_a_label_among_several_is_yes_or_no():
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.config.problem_type = "multi_label_classification"
    model = raison.load(hf, tokenizer)
    target = model.definition.target_of(1)
    assert outcome(model, target, np.array([0])) == f"not {target.text}"
    assert outcome(model, target, np.array([1])) == target.text


def test_heads_that_stay_on_are_not_called_off():
    """deeplift and value zeroing run passes of their own, and some families attend where nobody reaches."""
    from raison.studies.what_if import muted

    model = tiny_model("bert", "classification")
    found = raison.explain(model, "a good film", "gradient_norm")
    every = [(layer, head) for layer in range(2) for head in range(2)]
    off = muted(model, raison.core.registry.methods.build("gradient_norm"), found, every)
    assert off.diagnostics["value_without_heads"] != off.diagnostics["value_before"]
    for name in ("deeplift", "value_zeroing"):
        with pytest.raises(Unsupported, match="without some heads"):
            muted(model, raison.core.registry.methods.build(name), found, every)
    other = tiny_model("deberta", "classification")
    assert other.bypasses_tap
    with pytest.raises(Unsupported, match="not switched off"):
        muted(other, raison.core.registry.methods.build("gradient_norm"), raison.explain(other, "a good film"), every)
