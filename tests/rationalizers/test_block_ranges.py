"""Ranges of blocks are the encoder's own; encoders that can't be split are refused."""

from __future__ import annotations

import pytest
import torch

from raison.core.errors import Unsupported
from raison.rationalizers.block_ranges import blocks_of_encoder, run_blocks
from raison.rationalizers.build import build_rationalizer
from raison.rationalizers.config import RationalizerConfig
from raison.rationalizers.train import train_rationalizer
from raison.testing import tiny_hf
from tests.helpers.small_classifiers import reviews
from tests.helpers.small_rationalizers import (
    ENCODERS,
    batch_of,
    encoder_of,
)


@pytest.mark.parametrize("family", ENCODERS)
def test_stretches_are_the_encoder(family):
    encoder, tokenizer = encoder_of(family)
    inputs = batch_of(tokenizer)
    before = {name: id(module) for name, module in encoder.named_modules()}
    with torch.no_grad():
        whole = encoder.eval()(**inputs).last_hidden_state
        every = run_blocks(encoder, 0, len(blocks_of_encoder(encoder)[1]), inputs)
        first = run_blocks(encoder, 0, 1, inputs)
        second = run_blocks(encoder, 1, 2, inputs, states=first.left[-1])
    assert torch.equal(every.output, whole)
    torch.testing.assert_close(second.output, whole, rtol=0, atol=1e-12)
    torch.testing.assert_close(second.entered, every.left[0], rtol=0, atol=1e-12)
    assert before == {name: id(module) for name, module in encoder.named_modules()}


def test_what_cannot_be_split_is_refused(tmp_path):
    with pytest.raises(Unsupported, match="can't be split"):
        blocks_of_encoder(encoder_of("albert")[0])
    hf, tokenizer = tiny_hf("bart", "seq2seq")
    with pytest.raises(Unsupported, match="no encoder of BERT's kind"):
        train_rationalizer(hf, reviews(50), out=tmp_path / "r", tokenizer=tokenizer)


def test_encoders_that_would_read_hidden_tokens_are_refused(tmp_path):
    for family in ("deberta",):
        encoder, tokenizer = encoder_of(family)
        with pytest.raises(Unsupported, match="can't be hidden from"):
            config = RationalizerConfig.from_settings(
                {"blocks": 1, "pruning": 1, "predictor": "whole", "full_text": "none"}
            )
            build_rationalizer(encoder, tokenizer, config, ["no", "yes"], 0)
    from transformers import (
        MegatronBertConfig,
        MegatronBertModel,
        SqueezeBertConfig,
        SqueezeBertModel,
    )

    tokenizer = encoder_of("bert")[1]
    small = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    small |= {"intermediate_size": 64, "max_position_embeddings": 64}
    config = {"blocks": 1, "pruning": 1, "full_text": "predictor"}
    torch.manual_seed(0)
    old = MegatronBertModel(
        MegatronBertConfig(**small)
    ).eval()  # blocks that know no places, with attention of their own
    for chosen in (config, {}):  # before anything is measured
        with pytest.raises(Unsupported, match="can't be hidden from MegatronBertModel"):
            train_rationalizer(
                old, reviews(50), out=tmp_path / "o", tokenizer=tokenizer, config=chosen
            )
    odd = SqueezeBertModel(SqueezeBertConfig(**small, embedding_size=32)).eval()
    with pytest.raises(Unsupported, match="can't be (split|hidden)"):
        train_rationalizer(odd, reviews(50), out=tmp_path / "o", tokenizer=tokenizer)
    hf, tokenizer = tiny_hf("gpt2", "classification")
    with pytest.raises(Unsupported, match=r"no encoder"):
        train_rationalizer(
            hf,
            reviews(50),
            out=tmp_path / "r",
            tokenizer=tokenizer,
            config={"blocks": 1, "full_text": "none"},
        )
