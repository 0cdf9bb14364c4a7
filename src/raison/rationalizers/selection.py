"""Which tokens are kept: sampled in training, decided in evaluation.

In training a kept set is exactly 0 or 1 with the gradient of the Gumbel softmax (Jang et al. 2017; straight-through).
"""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["Selector", "decide_mask", "likeliest", "sample_mask", "tokens_by_text"]

TINY = 1e-9


class Selector(nn.Module):
    """LayerNorm, dropout, linear: how much is to be said for dropping and for keeping each token."""

    def __init__(self, width: int, dropout: float, pruning: int = 1, texts: int = 1):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(width, 2)
        # added to what is said for keeping, behind each pruning block and of each text; calibration sets them
        self.offsets = nn.Parameter(torch.zeros(pruning, texts), requires_grad=False)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.linear(self.dropout(self.norm(states)))
        return logits


def sample_mask(logits: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """[b t] 0 or 1, drawn by logits [b t 2]; its gradient is that of the soft draw."""
    if logits.dtype in (torch.bfloat16, torch.float16):  # too coarse for the noise
        logits = logits.float()
    noise = -torch.log(-torch.log(torch.rand_like(logits).clamp(TINY, 1 - 1e-7)))
    soft = torch.softmax((logits + noise) / temperature, -1)[..., 1]
    hard = (soft > 0.5).to(soft)
    return hard + (soft - soft.detach())  # adds an exact 0, so that 0 and 1 stay 0 and 1


def decide_mask(
    margin: torch.Tensor, among: torch.Tensor, never_empty: bool, side: torch.Tensor | None = None
) -> torch.Tensor:
    """[b t] True where more is said for keeping; of a text that would lose all, the likeliest token stays.

    `side` [b t] tells the texts of a pair apart, each of which keeps one.
    """
    kept = (margin > 0) & among
    if not never_empty:
        return kept
    for text in tokens_by_text(among, side):
        would_be_empty = ~(kept & text).any(-1, keepdim=True)
        kept = kept | (likeliest(margin, text) & would_be_empty)
    return kept


def tokens_by_text(among: torch.Tensor, side: torch.Tensor | None) -> list[torch.Tensor]:
    """[b t] the tokens of each text: of one, or of the two of a pair."""
    return [among] if side is None else [among & (side == number) for number in (0, 1)]


def likeliest(margin: torch.Tensor, among: torch.Tensor) -> torch.Tensor:
    """[b t] True for the token of largest margin of each row, where there is one."""
    best = margin.masked_fill(~among, -torch.inf).argmax(-1, keepdim=True)
    return torch.zeros_like(among).scatter(1, best, True) & among
