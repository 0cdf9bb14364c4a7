"""Attention that hides tokens in training, with a gradient for those that it does not see.

Attention is w · m / Σ w · m, with a gradient for m = 0 too: what would seeing this token have changed? In evaluation
hidden tokens are masked as padding is, and can't change anything, not even by rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import nn
from torch.nn import functional
from transformers import PretrainedConfig

from raison.models.attention.view_hooks import eager_attention_of, register_attention

__all__ = ["attention_that_hides", "hiding_in", "seeing"]

NAME = "raison_select"
TINY = 1e-9
_seen: ContextVar[torch.Tensor | None] = ContextVar("raison_seen", default=None)


def attention_that_hides(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    **kwargs: object,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The family's own eager attention, its weights shared anew among the tokens that are seen."""
    eager, seen = eager_attention_of(type(module)), _seen.get()
    if seen is None:
        unchanged: tuple[torch.Tensor, torch.Tensor | None] = eager(
            module, query, key, value, attention_mask, dropout=dropout, **kwargs
        )
        return unchanged
    # some step down to float32
    lowest = max(torch.finfo(query.dtype).min, torch.finfo(torch.float32).min)
    mask = query.new_zeros(())
    if attention_mask is not None:
        mask = attention_mask.clamp(min=lowest)  # a row of -inf is NaN
    shared_heads = query.shape[1] // value.shape[1]
    values = value.repeat_interleave(shared_heads, dim=1)
    kept = seen.detach()[:, None, None, :]
    between = (kept > 0) & (kept < 1)
    soft = bool(between.any())  # weights, not a choice: A2R's other predictor

    with torch.set_grad_enabled(soft and torch.is_grad_enabled()):
        plain = eager(module, query, key, value, mask, dropout=0.0, **kwargs)[1]
    weights_of_kept = plain * kept
    total = weights_of_kept.sum(-1, keepdim=True).clamp(min=TINY)
    if soft:
        shared = weights_of_kept / total
        output = functional.dropout(shared, dropout, module.training) @ values
    else:  # as evaluation does it: what is hidden is masked before the softmax
        shape = (*query.shape[:3], key.shape[2])
        hidden = (kept == 0).expand(shape)
        masked = mask.expand(shape).masked_fill(hidden, lowest)
        output, shared = eager(module, query, key, value, masked, dropout=dropout, **kwargs)
        output = output.transpose(1, 2)

    if seen.requires_grad:
        output = output + change_by_seeing(
            seen, plain.detach(), total.detach(), values.detach(), output.detach()
        )
    return output.transpose(1, 2).contiguous(), shared


def change_by_seeing(
    seen: torch.Tensor,
    weights: torch.Tensor,
    total: torch.Tensor,
    values: torch.Tensor,
    output: torch.Tensor,
) -> torch.Tensor:
    """[b h s d] zero, with the gradient of what seeing a token would change: w / (Σ seen + w) · (value − output).

    That is the whole step from hidden to seen. The slope at hidden, w / Σ seen, is many times larger where a hidden
    token has most of the attention, and explodes over several blocks (gradients of 10⁶ in MiniLM's six).
    """
    moved = (seen - seen.detach())[:, None, None, :]
    # of a weight between 0 and 1 the slope is meant
    is_hidden = (seen.detach() == 0).to(weights)
    hidden = is_hidden[:, None, None, :]
    step = weights / (total + hidden * weights) * moved
    total_step = step.sum(-1, keepdim=True)
    return step @ values - total_step * output


@contextmanager
def hiding_in(encoder: nn.Module) -> Iterator[None]:
    """While it is open, the attention of the encoder listens to `seeing`; afterwards it is as before."""
    register_attention(NAME, attention_that_hides)
    configs = configs_that_choose_attention(encoder)
    before = [config._attn_implementation for config in configs]
    try:
        for config in configs:
            config._attn_implementation = NAME
        yield
    finally:
        for config, name in zip(configs, before, strict=True):
            config._attn_implementation = name


def configs_that_choose_attention(encoder: nn.Module) -> list[PretrainedConfig]:
    """Every config that a module of the encoder holds, once."""
    configs = {}
    for module in encoder.modules():
        config = vars(module).get("config")
        if config is not None:
            configs[id(config)] = config
    return list(configs.values())


@contextmanager
def seeing(weights: torch.Tensor | None) -> Iterator[None]:
    """Blocks inside see tokens by these weights [b t]; None: all."""
    token = _seen.set(weights)
    try:
        yield
    finally:
        _seen.reset(token)
