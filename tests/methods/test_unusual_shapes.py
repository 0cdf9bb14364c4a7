"""Encoders deeper than decoders, targets inside of a text, windows longer than a text."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import raison
from raison.models.load import load
from raison.models.protocol import TargetSpec
from raison.models.runner.batching import pieces
from raison.testing import tiny_hf, tiny_model


def test_attcat_of_an_encoder_that_is_deeper_than_its_decoder():
    from transformers import BartConfig, BartForConditionalGeneration

    _, tokenizer = tiny_hf("bart", "seq2seq")
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=4, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.eos_token_id, forced_eos_token_id=None,
    )  # fmt: skip
    model = load(BartForConditionalGeneration(config).eval(), tokenizer)
    encoding, target = model.resolve_targets(
        model.encode([raison.Example("The film is lovely")])[0], TargetSpec(target=" good")
    )[0]
    ((_, trace),) = model.trace([encoding], [target], want=frozenset({"hidden"}))
    assert len(trace.hidden) == 5
    source = encoding.segment == encoding.segments.index("source")
    plan = list(pieces(0, encoding, target, np.ones((1, len(encoding)), bool), False))
    (prepared,) = model.runner.prepare(plan)
    inputs = prepared.inputs
    with torch.no_grad():
        states = model.hf.get_encoder()(
            inputs["input_ids"], inputs["attention_mask"]
        ).last_hidden_state[0]
    np.testing.assert_allclose(trace.hidden[-1][source], states, atol=1e-5)
    assert np.isfinite(
        raison.explain(model, "The film is lovely", "attcat", target=" good").scores
    ).all()


def test_a_window_longer_than_the_text_is_the_text():
    model = tiny_model("bert", "classification")
    wide = raison.explain(model, "The film is lovely", "occlusion(window=1000000000)")
    whole = raison.explain(model, "The film is lovely", "occlusion(window=4)")
    np.testing.assert_array_equal(wide.scores, whole.scores)


WRITTEN = ("cam", "gradcam", "attcat", "value_weighted_attention", "alti", "value_zeroing")


@pytest.mark.parametrize("method", WRITTEN)
@pytest.mark.parametrize(
    "family, task", [("llama", "causal"), ("gpt2", "causal"), ("t5", "seq2seq")]
)
def test_maps_of_a_written_token_end_before_it(family, task, method):
    """Targets of one text share a pass, as long as the last of them needs: no mean may run over the rows behind."""
    model = tiny_model(family, task)
    text = "The old town lies on a hill above the river"
    every = raison.explain(model, text, method, target="all", units="token")
    assert len(every) > 5  # so that some stand behind those that are looked at
    for number in (2, 4):
        one = every[number]
        place = (
            one.target.positions[0] if task == "causal" else number
        )  # of what an encoder-decoder writes
        other = raison.explain(model, text, method, target=place, units="token")
        assert (one.target.ids, one.target.positions) == (other.target.ids, other.target.positions)
        np.testing.assert_allclose(one.scores, other.scores, rtol=1e-4, atol=1e-7)
