"""Which tokens are kept: sampled in training, decided in evaluation; and how blocks are kept from seeing the others.

In training a kept set is exactly 0 or 1 with the gradient of the Gumbel softmax (Jang et al. 2017; straight-through),
and attention is w · m / Σ w · m, with a gradient for m = 0 too: what would seeing this token have changed? In
evaluation hidden tokens are masked as padding is, and can't change anything, not even by rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from raison.models.attention.registration import eager_of, register_attention

__all__ = ["Head", "decided", "likeliest", "reached_by", "sampled", "seeing", "texts_of"]

NAME = "raison_select"
TINY = 1e-9
_seen: ContextVar[torch.Tensor | None] = ContextVar("raison_seen", default=None)


class Head(nn.Module):
    """LayerNorm, dropout, linear: how much is to be said for dropping and for keeping each token."""

    def __init__(self, width: int, dropout: float, pruning: int = 1, texts: int = 1):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(width, 2)
        # added to what is said for keeping, behind each pruning block and of each text; calibration sets them
        self.offsets = nn.Parameter(torch.zeros(pruning, texts), requires_grad=False)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.linear(self.dropout(self.norm(states)))
        return found


def sampled(logits: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """[b t] 0 or 1, drawn by logits [b t 2]; its gradient is that of the soft draw."""
    logits = logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits  # too coarse for the noise
    noise = -torch.log(-torch.log(torch.rand_like(logits).clamp(TINY, 1 - 1e-7)))
    soft = torch.softmax((logits + noise) / temperature, -1)[..., 1]
    hard = (soft > 0.5).to(soft)
    return hard + (soft - soft.detach())  # adds an exact 0, so that 0 and 1 stay 0 and 1


def decided(
    margin: torch.Tensor, among: torch.Tensor, least_one: bool, side: torch.Tensor | None = None
) -> torch.Tensor:
    """[b t] True where more is said for keeping; of a text that would lose all, the likeliest token stays.

    `side` [b t] tells the texts of a pair apart, each of which keeps one.
    """
    kept = (margin > 0) & among
    if not least_one:
        return kept
    for part in texts_of(among, side):
        only = likeliest(margin, part)
        kept = kept | (only & ~(kept & part).any(-1, keepdim=True))
    return kept


def texts_of(among: torch.Tensor, side: torch.Tensor | None) -> list[torch.Tensor]:
    """[b t] the tokens of each text."""
    return [among] if side is None else [among & (side == number) for number in (0, 1)]


def likeliest(margin: torch.Tensor, among: torch.Tensor) -> torch.Tensor:
    """[b t] True for the token of largest margin of each row, where there is one."""
    best = margin.masked_fill(~among, -torch.inf).argmax(-1, keepdim=True)
    return torch.zeros_like(among).scatter(1, best, True) & among


def attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The family's own eager attention, its weights shared anew among the tokens that are seen."""
    eager, seen = eager_of(type(module)), _seen.get()
    if seen is None:
        found: tuple[torch.Tensor, torch.Tensor | None] = eager(
            module, query, key, value, attention_mask, dropout=dropout, **kwargs
        )
        return found
    lowest = max(torch.finfo(query.dtype).min, torch.finfo(torch.float32).min)  # some step down to float32
    mask = query.new_zeros(()) if attention_mask is None else attention_mask.clamp(min=lowest)  # a row of -inf is NaN
    values = value.repeat_interleave(query.shape[1] // value.shape[1], dim=1)
    kept = seen.detach()[:, None, None, :]
    soft = bool(((kept > 0) & (kept < 1)).any())  # weights, not a choice: A2R's other predictor
    with torch.set_grad_enabled(soft and torch.is_grad_enabled()):
        plain = eager(module, query, key, value, mask, dropout=0.0, **kwargs)[1]
    rest = (plain * kept).sum(-1, keepdim=True).clamp(min=TINY)
    if soft:
        shared = plain * kept / rest
        output = functional.dropout(shared, dropout, module.training) @ values
    else:  # as evaluation does it: what is hidden is masked before the softmax
        shape = (*query.shape[:3], key.shape[2])
        masked = mask.expand(shape).masked_fill((kept == 0).expand(shape), lowest)
        output, shared = eager(module, query, key, value, masked, dropout=dropout, **kwargs)
        output = output.transpose(1, 2)
    if seen.requires_grad:
        output = output + change(seen, plain.detach(), rest.detach(), values.detach(), output.detach())
    return output.transpose(1, 2).contiguous(), shared


def change(
    seen: torch.Tensor, weights: torch.Tensor, rest: torch.Tensor, values: torch.Tensor, output: torch.Tensor
) -> torch.Tensor:
    """[b h s d] zero, with the gradient of what seeing a token would change: w / (Σ seen + w) · (value − output).

    That is the whole step from hidden to seen. The slope at hidden, w / Σ seen, is many times larger where a hidden
    token has most of the attention, and explodes over several blocks (gradients of 10⁶ in MiniLM's six).
    """
    moved = (seen - seen.detach())[:, None, None, :]
    hidden = (seen.detach() == 0).to(weights)[:, None, None, :]  # of a weight between 0 and 1 the slope is meant
    step = weights / (rest + hidden * weights) * moved
    return step @ values - step.sum(-1, keepdim=True) * output


@contextmanager
def reached_by(*encoders: nn.Module) -> Iterator[None]:
    """While it is open, the attention of these encoders listens to `seeing`; afterwards it is as before."""
    register_attention(NAME, attention)
    configs: list[Any] = list(
        {id(m.config): m.config for e in encoders for m in e.modules() if hasattr(m, "config")}.values()
    )
    before = [config._attn_implementation for config in configs]
    try:
        for config in configs:
            config._attn_implementation = NAME
        yield
    finally:
        for config, name in zip(configs, before, strict=True):
            config._attn_implementation = name


@contextmanager
def seeing(weights: torch.Tensor | None) -> Iterator[None]:
    """Blocks inside see tokens by these weights [b t]; None: all."""
    token = _seen.set(weights)
    try:
        yield
    finally:
        _seen.reset(token)
