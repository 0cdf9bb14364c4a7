"""A rationalizer against P1's equations (tests/oracles/rationalizers.py), for every way to hide and to read."""

from __future__ import annotations

import pytest
import torch
from transformers import BertConfig, BertModel

from raison.rationalizers.build import build_rationalizer
from raison.rationalizers.calibration import calibrate_selector
from raison.rationalizers.config import RationalizerConfig
from raison.testing import tiny_hf
from tests.oracles.rationalizers import LiteralRationalizer

DEPTH, WIDTH, HEADS = 5, 16, 2
TEXT = "The old town lies on a hill above the river."


@pytest.mark.parametrize("read", ["first", "mean"])
@pytest.mark.parametrize("hide", ["zero", "attention"])
@pytest.mark.parametrize("predictor", ["rest", "whole"])
def test_a_rationalizer_is_p1s_equations(predictor, hide, read):
    """P1 as in methods.md 2.1 (zero, first), and the ways that differ from it by name."""
    _, tokenizer = tiny_hf("bert", "classification")
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=WIDTH, num_hidden_layers=DEPTH, num_attention_heads=HEADS,
        intermediate_size=24, max_position_embeddings=64, initializer_range=0.4, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    settings = RationalizerConfig(
        blocks=3,
        pruning=2,
        predictor=predictor,
        hide=hide,
        read=read,
        full_text="mid_cls",
        sparsity=(0.3,),
    )
    model = (
        build_rationalizer(BertModel(config), tokenizer, settings, ["no", "yes"], seed=1)
        .double()
        .eval()
    )
    ids = tokenizer(TEXT)["input_ids"]
    with torch.no_grad():
        for value in model.parameters():  # also where a fresh model has zeros and ones
            value.add_(0.2 * torch.randn_like(value))
        calibrate_selector(model, lambda: [{"input_ids": torch.tensor([ids])}])
        told = model(torch.tensor([ids]), full=True)
        literal = LiteralRationalizer(model.state_dict(), model.config.special_ids, HEADS)
        masks, logits, full = literal.run(ids, settings)
    assert [mask[0].long().tolist() for mask in told.masks] == masks
    assert 0 < sum(masks[1]) < sum(masks[0]) < len(ids)  # both blocks drop some, and some are left
    torch.testing.assert_close(told.logits[0], logits, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(told.full_logits[0], full, rtol=1e-9, atol=1e-9)
