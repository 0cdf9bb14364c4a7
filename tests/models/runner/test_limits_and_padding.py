"""Padding, limits of length, and rows that a head reads."""

from __future__ import annotations

import numpy as np
import pytest

import raison
from raison.models.protocol import Question
from raison.testing import tiny_hf, tiny_model
from raison.testing.model_contract import model_with_padding

TEXT = "The old town lies on a hill"


def test_a_decoder_classifier_keeps_the_row_it_reads():
    model = tiny_model("gpt2", "classification")
    encoding = model.encode([raison.Example("A dull story [PAD]")])[0]
    last = np.flatnonzero(encoding.ids != model.hf.config.pad_token_id)[-1]
    assert last < len(encoding) - 1 and encoding.fixed[last] and not encoding.fixed[-1]
    found = raison.explain(model, "A dull story [PAD]", units="token")
    (deleted, masked) = (
        model.score(
            [Question(encoding, found.target, np.arange(len(encoding))[None] != 0)], removal=r
        )[0].value
        for r in ("delete", "mask")
    )
    np.testing.assert_allclose(deleted, masked, atol=1e-9)


def test_padding_needs_a_padding_id():
    hf, tokenizer = tiny_hf("gpt2", "classification")
    hf.config.pad_token_id = None
    model = raison.load(hf, tokenizer)
    assert model.runner.task.paddings == ("exact",)
    with pytest.raises(raison.RaisonError, match="padding"):
        raison.explain(model_with_padding(model, "right"), TEXT)
