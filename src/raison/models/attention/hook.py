"""The attention of a view: the family's own, watched, and changed where the running call asks for it.

The weights are never computed again here: soft caps, sinks and biases are the family's business. Where something is to
change (a head switched off, a row that may see nothing), the weights change just before the family's own product with
the values, so that what it does behind that product stays as it is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from raison.core.errors import Unsupported
from raison.models.attention.call import Attended, Call, Seen, current
from raison.models.attention.masks import attention_mask as additive_mask
from raison.models.attention.products import Arguments, Function, Mark, Options, Products
from raison.models.attention.registration import eager_of, fused_attention, register_attention

__all__ = ["LONG", "NAME", "Reweighted", "Softmaxes", "attention", "register"]

NAME = "raison"
LONG = 256  # tokens from which fused attention pays (0.95 x eager at 256, 0.8 x at 512, 0.55 x at 1,000; SmolLM2)


def register() -> None:
    """Make the attention known to transformers, with its mask."""
    register_attention(NAME, attention, additive_mask)


def attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **kwargs: Any,
) -> Attended:
    """The family's own eager attention, watched.

    Long texts that nobody looks into take the fused kernel, if that is what the user's model does.
    """
    call = current()
    if call is None:
        return eager_of(type(module))(module, query, key, value, attention_mask, **kwargs)
    if call.packed is not None:
        return call.packed.attend(
            eager_of(type(module)), module, query, key, value, attention_mask, **kwargs
        )

    index = call.layer
    call.layer += 1
    if is_fusible(module, call, key):
        return fused_attention()(module, query, key, value, attention_mask, **kwargs)
    if "crossing" in call.record and getattr(module, "raison_kind", "") == "cross":
        key, value = (
            key.view_as(key),
            value.view_as(value),
        )  # tensors of their own, met by all that crosses here
        call.crossing.append([key, value])

    eager = eager_of(type(module))
    factors = None if call.heads is None else call.heads[index]
    nothing = None
    if call.blocked and attention_mask is not None:
        nothing = rows_that_see_nothing(attention_mask)
    if factors is None and nothing is None:
        output, weights = eager(module, query, key, value, attention_mask, **kwargs)
    else:
        with Reweighted(factors, nothing) as watch:
            output, _ = eager(module, query, key, value, attention_mask, **kwargs)
        if watch.weights is None:
            raise Unsupported(
                f"{type(module).__name__} multiplies its values in a way of its own, so none can be hidden."
            )
        weights = watch.weights

    if "attention" in call.record:
        call.maps.append(Seen(getattr(module, "raison_kind", "self"), weights, call.block))
    return output, weights


def rows_that_see_nothing(mask: torch.Tensor) -> torch.Tensor:
    """[b 1 s 1] of an additive mask [b 1 s t]: True where every key is hidden."""
    hidden = mask <= torch.finfo(mask.dtype).min / 2
    return hidden.all(-1, keepdim=True)


class Reweighted(Products):
    """Runs one attention with other weights: zero in some rows, scaled in each head."""

    def __init__(self, factors: torch.Tensor | None, nothing: torch.Tensor | None):
        super().__init__()
        self.factors = factors  # [h]
        self.nothing = nothing  # [b 1 s 1]
        self.weights: torch.Tensor | None = None  # [b h s t] as they were multiplied

    def product(
        self, mark: Mark, weights: torch.Tensor, values: torch.Tensor, multiply: Function
    ) -> torch.Tensor:
        if self.nothing is not None:
            weights = weights.masked_fill(self.nothing, 0.0)
        if self.factors is not None:
            weights = weights * self.factors.to(weights)[None, :, None, None]
        self.weights = weights
        return super().product(mark, weights, values, multiply)


def is_fusible(module: nn.Module, call: Call, key: torch.Tensor) -> bool:
    """Long texts that nobody looks into run as the user's model runs them; short ones cost the same either way."""
    if key.shape[2] < LONG or not getattr(module, "raison_fused", False):
        return False
    looked_into = call.blocked or call.record or call.heads is not None
    return not looked_into and not torch.is_grad_enabled()


class Softmaxes(Products):
    """Records the weights of every attention as a map: for families whose attention is not an interface."""

    def __init__(self, call: Call):
        super().__init__()
        self.call = call

    def other(self, name: str, function: Function, args: Arguments, kwargs: Options) -> Any:
        result = function(*args, **kwargs)
        if name == "softmax" and isinstance(result, torch.Tensor) and result.dim() == 4:
            self.call.maps.append(Seen("self", result, self.call.block))
        return result
