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
    "gather_read_tokens",
    "likeliest_token",
    "sample_mask",
    "token_roles",
    "tokens_by_text",
    "try_hidden_tokens",
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
        normed = self.norm(states)
        logits: torch.Tensor = self.linear(self.dropout(normed))
        return logits


def sample_mask(logits: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """[b t] 0 or 1, drawn by logits [b t 2]; its gradient is that of the soft draw."""
    if logits.dtype in (torch.bfloat16, torch.float16):  # too coarse for the noise
        logits = logits.float()
    uniform = torch.rand_like(logits).clamp(TINY, 1 - 1e-7)
    exponential = -torch.log(uniform)
    gumbel = -torch.log(exponential)
    noisy_logits = (logits + gumbel) / temperature
    soft = torch.softmax(noisy_logits, -1)[..., 1]
    hard = (soft > 0.5).to(soft)
    exact_zero = soft - soft.detach()  # has the gradient, and leaves 0 and 1 as they are
    return hard + exact_zero


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
        kept_of_text = kept & text
        would_be_empty = ~kept_of_text.any(-1, keepdim=True)
        likeliest = likeliest_token(margin, text)
        rescued = likeliest & would_be_empty
        kept = kept | rescued
    return kept


def tokens_by_text(among: torch.Tensor, side: torch.Tensor | None) -> list[torch.Tensor]:
    """[b t] the tokens of each text: of one, or of the two of a pair."""
    if side is None:
        return [among]
    first = among & (side == 0)
    second = among & (side == 1)
    return [first, second]


def likeliest_token(margin: torch.Tensor, among: torch.Tensor) -> torch.Tensor:
    """[b t] True for the token of largest margin of each row, where there is one."""
    margin_among = margin.masked_fill(~among, -torch.inf)
    best = margin_among.argmax(-1, keepdim=True)
    nowhere = torch.zeros_like(among)
    is_best = nowhere.scatter(1, best, True)
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
    from_the_end = real.flip(-1)
    words_from_here = from_the_end.cumsum(-1).flip(-1)
    before_a_word = words_from_here > 0
    specials_so_far = special.cumsum(-1)
    first_special = special & (specials_so_far == 1)
    lead = special & (before_a_word | first_special)

    separators = torch.zeros_like(present)
    if separator_id is not None:
        separators = input_ids == separator_id
    in_second_text = separators.cumsum(-1) > 0
    return TokenRoles(
        present=present,
        real=real,
        special=special,
        lead=lead,
        side=in_second_text.long(),
    )


def try_hidden_tokens(
    seen: torch.Tensor, real: torch.Tensor, share: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The weights [b t] of what is seen, and which tokens have to be read for them and their gradients.

    A hidden token changes no other, so each can be tried alone: a random share is, with a gradient that is as much
    larger as they are fewer, which is right on average.
    """
    shown = seen > 0
    if not seen.requires_grad:
        return seen, shown
    uniform = torch.rand(seen.shape, device=seen.device)
    drawn = uniform < share
    hidden = real & ~shown
    tried = hidden & drawn
    slope_of_tried = tried.to(seen) / share
    slope = shown.to(seen) + slope_of_tried
    fixed = seen.detach()
    zero = seen - fixed  # with the gradient of what is seen
    weights = fixed + zero * slope
    return weights, shown | tried


def gather_read_tokens(
    read: torch.Tensor, states: torch.Tensor, seen: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """States [b t d] and weights [b t] of the tokens that are read, in their order, and where a shorter row ends."""
    lengths = read.sum(1)
    longest = int(lengths.max())
    read_first = read.long().argsort(dim=1, descending=True, stable=True)
    order = read_first[:, :longest]
    width = states.shape[-1]
    wide = order[..., None].expand(-1, -1, width)
    gathered_states = states.gather(1, wide)
    gathered_weights = seen.gather(1, order)
    gathered_read = read.gather(1, order)
    return gathered_states, gathered_weights, gathered_read
