"""What the tokens of a batch are, and which of them have to be computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

__all__ = ["TokenRoles", "gather_read", "token_roles", "try_hidden"]


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
    no_word = torch.isin(input_ids, torch.tensor(special_ids, device=input_ids.device))
    special, real = present & no_word, present & ~no_word
    before_a_word = real.flip(-1).cumsum(-1).flip(-1) > 0
    first_special = special & (special.cumsum(-1) == 1)
    separators = torch.zeros_like(present) if separator_id is None else input_ids == separator_id
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
    tried = real & ~shown & (torch.rand(seen.shape, device=seen.device) < share)
    slope = shown.to(seen) + tried.to(seen) / share
    return seen.detach() + (seen - seen.detach()) * slope, shown | tried


def gather_read(
    read: torch.Tensor, states: torch.Tensor, seen: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """States [b t d] and weights [b t] of the tokens that are read, in their order, and where a shorter row ends."""
    longest = int(read.sum(1).max())
    order = read.long().argsort(dim=1, descending=True, stable=True)[:, :longest]
    wide = order[..., None].expand(-1, -1, states.shape[-1])
    return states.gather(1, wide), seen.gather(1, order), read.gather(1, order)
