"""Trainings for tests: a small problem, tiny settings, and a literal loop."""

from __future__ import annotations

from pathlib import Path

import torch

from raison.core.records import Example
from raison.testing.tiny import TEXTS
from raison.training.compatibility_settings import CompatibilityTraining
from raison.training.language_model_rows import TrainingRow, language_model_blocks
from raison.training.partial_context_loss import PartialContextLoss
from raison.training.translation_rows import translation_material
from raison.training.word_dropout import keep_rule_of
from raison.training.word_dropout_attention import heads_within_reach

__all__ = ["PAIRS", "SMALL", "literal", "one_group", "problem", "setup_of"]

PAIRS = [
    (text[: 40 + 3 * i], TEXTS[(k + 1) % len(TEXTS)][: 30 + i])
    for i in range(8)
    for k, text in enumerate(TEXTS)
]
SMALL = dict(length=24, batch=4, steps=4, warm=0.0)


def problem(seed: int = 0):
    """A small network with dropout, and what it should learn."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.Dropout(0.3), torch.nn.Tanh(), torch.nn.Linear(16, 1)
    )
    data = torch.randn(50, 4, 6)
    feed = lambda part: data[part % 50]  # noqa: E731
    loss = lambda model, batch, part: (model(batch)[..., 0] - batch.sum(-1)).square().mean()  # noqa: E731
    return model, feed, loss


def one_group(model, peak=1e-2):
    return [{"params": list(model.parameters()), "peak": peak}]


def setup_of(model, **settings) -> tuple[PartialContextLoss, list[TrainingRow]]:

    chosen = CompatibilityTraining(**{**SMALL, **settings})
    if model.task == "causal":
        found = language_model_blocks(
            model, [Example(t * 6) for t in TEXTS], length=chosen.length, held=0.3, batch=1
        )
    else:
        examples = [Example(source, label=target) for source, target in PAIRS]
        found = translation_material(
            model, examples, length=60, held=0.3, batch=1, own=False, out=Path()
        )
    task = PartialContextLoss(
        model.hf,
        model,
        keep_rule_of(chosen.keep),
        chosen,
        heads_within_reach(model.hf, "tiny"),
        found.lead,
    )
    return task, found.held


def literal(hf, feed, lora, steps, seed, rate, lead=0):
    """Plain training, written out: eager attention, next-token loss, AdamW, linear decay."""
    hf.set_attn_implementation("eager")
    hf.train()
    optimizer = torch.optim.AdamW(hf.parameters(), weight_decay=0.01, fused=True)
    losses = []
    for step in range(steps):
        torch.manual_seed(seed * 1_000_003 + step)
        ids = torch.tensor([row.target for row in feed(step)])
        logits = hf(
            input_ids=ids[:, :-1], attention_mask=torch.ones_like(ids[:, :-1]), use_cache=False
        ).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(hf.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = rate * (steps - step) / steps
        optimizer.step()
        optimizer.zero_grad()
        losses.append(round(loss.item(), 5))
    return losses
