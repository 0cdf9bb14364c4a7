"""The mean over the tokens that are there."""

from __future__ import annotations

import torch

from tests.helpers.lora_folders import IDS, MASK, tiny_bert


def test_mean_pooling_ignores_padding():
    model = tiny_bert()
    padded = model(input_ids=IDS, attention_mask=MASK).logits[1]
    alone = model(input_ids=IDS[1:, :3]).logits[0]
    torch.testing.assert_close(padded, alone, rtol=0, atol=1e-6)


def test_hidden_states_and_attentions_are_handed_on():
    model = tiny_bert()
    model.set_attn_implementation("eager")
    out = model(
        inputs_embeds=model.bert.embeddings.word_embeddings(IDS),
        attention_mask=MASK,
        output_hidden_states=True,
        output_attentions=True,
    )
    assert len(out.hidden_states) == 3 and len(out.attentions) == 2
    torch.testing.assert_close(out.logits, model(input_ids=IDS, attention_mask=MASK).logits)
