"""Regularizers that keep hidden states near their words: tying loss and masked-word (MLM) loss (P3).

    tying   δ · mean over real tokens of ‖h_t − e_t‖²
    mlm     η · −log softmax(E h_t)[x_t], mean over chosen tokens: 15 % of the real ones, of which 80 % are [MASK], 10 %
            other words and 10 % themselves; E is the frozen embedding table, so there are no new parameters

concat and residual are no losses but parts of a config (`ClassifierConfig.combine`).
"""

from __future__ import annotations

import torch
from torch.autograd.function import FunctionCtx

from raison.attention_models.module import AttentionClassifier, ClassifierOutput
from raison.attention_models.vocabulary import SPECIAL

__all__ = ["corrupted_words", "mlm_loss", "tying_loss"]

CACHED_SCORES = 1 << 20  # scores that fit into a cache
MASKED, UNCHANGED = (
    0.8,
    0.9,
)  # of the chosen tokens: below the first [MASK], up to the second themselves


def tying_loss(output: ClassifierOutput) -> torch.Tensor:
    """Mean of ‖h − e‖² over the real tokens of the batch (the paper's square; padding left out)."""
    distances = (output.states - output.embeddings).square().sum(-1)
    return (distances * output.real).sum() / output.real.sum().clamp(min=1)


def corrupted_words(
    ids: torch.Tensor, real: torch.Tensor, vocabulary: int, share: float, random: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """[b t] ids as BERT corrupts them, and which tokens are to be predicted; never padding or special tokens."""
    # drawn on the CPU, so that they are the same on all devices
    choice = torch.rand(ids.shape, generator=random).to(ids.device)
    kind = torch.rand(ids.shape, generator=random).to(ids.device)
    highest = max(vocabulary, len(SPECIAL) + 1)
    others = torch.randint(len(SPECIAL), highest, ids.shape, generator=random).to(ids.device)

    chosen = real & (choice < share)
    masks = torch.full_like(ids, SPECIAL.index("[MASK]"))
    with_masks = torch.where(chosen & (kind < MASKED), masks, ids)
    return torch.where(chosen & (kind >= UNCHANGED), others, with_masks), chosen


def mlm_loss(
    model: AttentionClassifier,
    ids: torch.Tensor,
    present: torch.Tensor,
    share: float,
    random: torch.Generator,
) -> torch.Tensor:
    """Cross entropy of the chosen words, predicted from a pass over the corrupted text."""
    special = torch.isin(ids, torch.tensor(model.config.special_ids, device=ids.device))
    changed, chosen = corrupted_words(
        ids, present & ~special, model.config.vocab_size, share, random
    )
    table = model.words.weight
    if not bool(chosen.any()):
        return table.new_zeros(())
    states = model(changed, attention_mask=present).states[chosen]  # [n d]
    loss: torch.Tensor = WordCrossEntropy.apply(states, table.detach(), ids[chosen])
    return loss


class WordCrossEntropy(torch.autograd.Function):
    """Mean cross entropy of words predicted by a frozen table: what `cross_entropy(states @ table.T, wanted)` is.

    Scores of all words are never kept: a few rows at a time, which stay in the cache, give the loss and its gradient.
    Of 900 words among 30,000 that takes half of the time.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx, states: torch.Tensor, table: torch.Tensor, wanted: torch.Tensor
    ) -> torch.Tensor:
        loss = states.new_zeros(())
        slope = torch.empty_like(states)
        rows = max(1, CACHED_SCORES // len(table))
        for start in range(0, len(states), rows):
            part = slice(start, start + rows)
            scores = states[part] @ table.T  # [r v]
            largest = scores.amax(-1, keepdim=True)
            of_wanted = scores.gather(1, wanted[part, None]) - largest
            exponentials = scores.sub_(largest).exp_()
            total = exponentials.sum(-1, keepdim=True)
            loss += (total.log() - of_wanted).sum()
            slope[part] = exponentials @ table / total - table[wanted[part]]
        ctx.save_for_backward(slope / len(states))
        return loss / len(states)

    @staticmethod
    def backward(ctx: FunctionCtx, *slopes: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (saved,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return slopes[0] * saved, None, None
