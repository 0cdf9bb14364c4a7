"""Which tokens of a target are the model's own first choice."""

from __future__ import annotations

from raison.core.records import Example
from raison.models.protocol import TargetSpec
from raison.studies.reproduce.target_tokens import is_own_token
from raison.testing import tiny_model


def test_own_tokens_are_those_of_the_plain_model():
    import torch

    model = tiny_model("gpt2", "causal")
    (encoding,) = model.encode([Example("the cat sat on")])
    ((longer, target),) = model.resolve_targets(
        encoding, TargetSpec(target=" the mat and the dog", output="log_prob")
    )
    with torch.no_grad():
        logits = model.hf(torch.tensor(longer.ids[None])).logits[0]
    plain = [
        int(logits[p - 1].argmax()) == i for i, p in zip(target.ids, target.positions, strict=True)
    ]
    assert is_own_token(model, longer, target).tolist() == plain
