"""What keeps hidden states near the words that they stand for, so that attention on them is about those words (P3).

    tying   δ · mean over real tokens of ‖h_t − e_t‖²
    mlm     η · −log softmax(E h_t)[x_t], mean over chosen tokens: 15 % of the real ones, of which 80 % are [MASK], 10 %
            other words and 10 % themselves; E is the frozen embedding table, so there are no new parameters

concat and residual are no losses but parts of a design (`Design.combine`).
"""

from __future__ import annotations

from typing import Any

import torch

from raison.attention_models.module import AttentionClassifier, Told
from raison.attention_models.vocabulary import SPECIAL

__all__ = ["corrupted", "mlm_loss", "tying_loss"]

CACHED = 1 << 20  # scores that fit into a cache


def tying_loss(told: Told) -> torch.Tensor:
    """Mean of ‖h − e‖² over the real tokens of the batch (the paper's square; padding left out)."""
    assert told.states is not None and told.embeddings is not None and told.real is not None
    apart = (told.states - told.embeddings).square().sum(-1)
    return (apart * told.real).sum() / told.real.sum().clamp(min=1)


def corrupted(
    ids: torch.Tensor, real: torch.Tensor, words: int, share: float, random: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """[b t] ids as BERT corrupts them, and which tokens are to be told; never padding or special tokens."""
    drawn, how = (torch.rand(ids.shape, generator=random).to(ids.device) for _ in range(2))  # alike on all devices
    other = torch.randint(len(SPECIAL), max(words, len(SPECIAL) + 1), ids.shape, generator=random).to(ids.device)
    chosen = real & (drawn < share)
    found = torch.where(chosen & (how < 0.8), torch.full_like(ids, SPECIAL.index("[MASK]")), ids)
    return torch.where(chosen & (how >= 0.9), other, found), chosen


def mlm_loss(
    model: AttentionClassifier, ids: torch.Tensor, there: torch.Tensor, share: float, random: torch.Generator
) -> torch.Tensor:
    """Cross entropy of the chosen words, told from a pass over the corrupted text."""
    special = torch.isin(ids, torch.tensor(model.config.special, device=ids.device))
    changed, chosen = corrupted(ids, there & ~special, model.config.vocab_size, share, random)
    if not bool(chosen.any()):
        return model.words.weight.new_zeros(())
    states = model(changed, attention_mask=there).states[chosen]  # [n d]
    loss: torch.Tensor = Named.apply(states, model.words.weight.detach(), ids[chosen])  # type: ignore[no-untyped-call]
    return loss


class Named(torch.autograd.Function):
    """Mean cross entropy of words told by a frozen table: what `cross_entropy(states @ table.T, wanted)` is.

    Scores of all words are never kept: a few rows at a time, which stay in the cache, give the loss and its gradient.
    Of 900 words among 30,000 that takes half of the time.
    """

    @staticmethod
    def forward(ctx: Any, states: torch.Tensor, table: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        loss = states.new_zeros(())
        slope = torch.empty_like(states)
        rows = max(1, CACHED // len(table))
        for start in range(0, len(states), rows):
            part = slice(start, start + rows)
            scores = states[part] @ table.T  # [r v]
            top = scores.amax(-1, keepdim=True)
            own = scores.gather(1, wanted[part, None]) - top
            odds = scores.sub_(top).exp_()
            whole = odds.sum(-1, keepdim=True)
            loss += (whole.log() - own).sum()
            slope[part] = odds @ table / whole - table[wanted[part]]
        ctx.save_for_backward(slope / len(states))
        return loss / len(states)

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> tuple[torch.Tensor, None, None]:  # type: ignore[override]
        return slope * ctx.saved_tensors[0], None, None
