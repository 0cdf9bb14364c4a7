"""Gradients whatever mode the caller is in."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import raison
from raison.testing import tiny_hf


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize(
    "name", ["gae", "gradient_norm", "attention_last", "lrp", "deeplift", "value_zeroing", "lime"]
)
def test_gradients_do_not_depend_on_the_mode_of_the_caller(mode, name):
    hf, tokenizer = tiny_hf("bert", "classification")
    with mode():
        inside = raison.explain(raison.load(hf, tokenizer), "The film is lovely", name)
    outside = raison.explain(raison.load(hf, tokenizer), "The film is lovely", name)
    np.testing.assert_allclose(inside.scores, outside.scores, rtol=1e-9, atol=1e-12)
