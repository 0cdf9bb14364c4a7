"""The tokens of a batch: what they are, which are kept (sampled in training, else decided), which must be computed.

In training a kept set is exactly 0 or 1 with the gradient of the Gumbel softmax (Jang et al. 2017; straight-through).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

__all__ = [
    "Selector",
    "TokenRoles",
    "decide_mask",
    "gather_read",
    "likeliest_token",
    "sample_mask",
    "token_roles",
    "tokens_by_text",
    "try_hidden",
]

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
    uniform = torch.rand_like(logits).clamp(TINY, 1 - 1e-7)
    gumbel = -torch.log(-torch.log(uniform))
    soft = torch.softmax((logits + gumbel) / temperature, -1)[..., 1]
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
        kept = kept | (likeliest_token(margin, text) & would_be_empty)
    return kept


def tokens_by_text(among: torch.Tensor, side: torch.Tensor | None) -> list[torch.Tensor]:
    """[b t] the tokens of each text: of one, or of the two of a pair."""
    if side is None:
        return [among]
    return [among & (side == 0), among & (side == 1)]


def likeliest_token(margin: torch.Tensor, among: torch.Tensor) -> torch.Tensor:
    """[b t] True for the token of largest margin of each row, where there is one."""
    best = margin.masked_fill(~among, -torch.inf).argmax(-1, keepdim=True)
    is_best = torch.zeros_like(among).scatter(1, best, True)
    return is_best & among


@dataclass
class TokenRoles:
    """What the tokens of a batch are."""

    present: torch.Tensor  # [b t]
    real: torch.Tensor  # [b t] words: may be selected
    special: torch.Tensor  # [b t]
    lead: torch.Tensor  # [b t] special tokens that the predictor sees
    side: torch.Tensor  # [b t] 0 or 1: which text of a pair


def token_roles(
    input_ids: torch.Tensor,
    present: torch.Tensor,
    special_ids: Sequence[int],
    separator_id: int | None,
) -> TokenRoles:
    """What the tokens of a batch are, by their numbers."""
    special_tokens = torch.tensor(special_ids, device=input_ids.device)
    no_word = torch.isin(input_ids, special_tokens)
    special = present & no_word
    real = present & ~no_word
    words_from_here = real.flip(-1).cumsum(-1).flip(-1)
    before_a_word = words_from_here > 0
    first_special = special & (special.cumsum(-1) == 1)
    separators = torch.zeros_like(present)
    if separator_id is not None:
        separators = input_ids == separator_id
    return TokenRoles(
        present=present,
        real=real,
        special=special,
        lead=special & (before_a_word | first_special),
        side=(separators.cumsum(-1) > 0).long(),
    )


def try_hidden(
    seen: torch.Tensor, real: torch.Tensor, share: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The weights [b t] of what is seen, and which tokens have to be read for them and their gradients.

    A hidden token changes no other, so each can be tried alone: a random share is, with a gradient that is as much
    larger as they are fewer, which is right on average.
    """
    shown = seen > 0
    if not seen.requires_grad:
        return seen, shown
    drawn = torch.rand(seen.shape, device=seen.device) < share
    tried = real & ~shown & drawn
    slope = shown.to(seen) + tried.to(seen) / share
    zero = seen - seen.detach()  # with the gradient of what is seen
    return seen.detach() + zero * slope, shown | tried


def gather_read(
    read: torch.Tensor, states: torch.Tensor, seen: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """States [b t d] and weights [b t] of the tokens that are read, in their order, and where a shorter row ends."""
    longest = int(read.sum(1).max())
    read_first = read.long().argsort(dim=1, descending=True, stable=True)
    order = read_first[:, :longest]
    wide = order[..., None].expand(-1, -1, states.shape[-1])
    gathered_states = states.gather(1, wide)
    gathered_weights = seen.gather(1, order)
    return gathered_states, gathered_weights, read.gather(1, order)
