"""What a view does in a pass besides the model's own work: its attention and masks, and hooks on blocks, embeddings
and the LM head.

**Attention.** It is the family's own, watched. The weights are never computed again here: soft caps, sinks and biases
are the family's business. Where something is to change (a head switched off, a row that may see nothing), the weights
change just before the family's own product with the values, so that what it does behind that product stays as it is.

**Masks.** transformers builds its masks from *indices*. A rationale runs only the kept tokens, so their indices close
up while their positions do not: a window counted in indices would reach too far back. So the mask function that
belongs to raison's attention asks the family's own rule (causal, window, chunk, both ways) about original positions
instead. The result is additive, because eager attention would add a boolean as 0 or 1.

**Hooks** stand on the blocks, the word embeddings and the LM head, and do what the running call asks for. Activations
that are several functions become one, which rules of relevance can see.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from raison.core.errors import Unsupported
from raison.models.attention.call import (
    Attended,
    Attention,
    Block,
    Call,
    EagerAttention,
    MaskRule,
    Seen,
    running_call,
)
from raison.models.attention.products import ReweightedProducts

__all__ = [
    "LONG",
    "NAME",
    "activation",
    "attention_mask",
    "begin_block",
    "eager_attention_of",
    "end_block",
    "fused_attention",
    "keep_asked_rows_at_head",
    "register_attention",
    "register_view_attention",
    "replace_embeddings",
    "view_attention",
]

NAME = "raison"
LONG = 256  # tokens from which fused attention pays (0.95 x eager at 256, 0.8 x at 512, 0.55 x at 1,000; SmolLM2)


def register_view_attention() -> None:
    """Make the attention of views known to transformers, with its mask."""
    register_attention(NAME, view_attention, attention_mask)


# -- transformers' table of attention functions, whose names a model's config may give ------------------------
# transformers takes seconds to import, so its modules are imported when a model is there.


def register_attention(name: str, attention: Attention, mask: MaskRule | None = None) -> None:
    """Make an attention known under a name, with the function that makes its masks (None: as for eager attention).

    Without a function of its own an attention would get no mask at all.
    """
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(name, attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register(name, mask or ALL_MASK_ATTENTION_FUNCTIONS["eager"])


def fused_attention() -> Attention:
    """PyTorch's fused kernel, as transformers calls it."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    fused: Attention = ALL_ATTENTION_FUNCTIONS["sdpa"]
    return fused


def eager_attention_of(kind: type) -> EagerAttention:
    """The eager attention function of the file that defines an attention class."""
    for parent in kind.__mro__:
        module = sys.modules.get(parent.__module__)
        function: EagerAttention | None = (
            vars(module).get("eager_attention_forward") if module else None
        )
        if function is not None:
            return function
    raise Unsupported(
        f"{kind.__name__} has no eager attention, so raison can't look inside this model."
    )


# -- attention ------------------------------------------------------------------------------------------------


def view_attention(
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
    call = running_call.get()
    if call is None:
        return eager_attention_of(type(module))(module, query, key, value, attention_mask, **kwargs)
    if call.packed is not None:
        eager = eager_attention_of(type(module))
        cross = kind_of_attention(module) == "cross"
        return call.packed.attend(
            eager, module, query, key, value, attention_mask, cross=cross, **kwargs
        )

    index = call.layer
    call.layer += 1
    if is_fusible(module, call, key):
        return fused_attention()(module, query, key, value, attention_mask, **kwargs)
    if "crossing" in call.record and kind_of_attention(module) == "cross":
        # tensors of their own, met by all that crosses here
        key, value = key.view_as(key), value.view_as(value)
        call.crossing.append([key, value])

    eager = eager_attention_of(type(module))
    factors = None
    if call.heads is not None:
        factors = call.heads[index]
    nothing = None
    if call.blocked and attention_mask is not None:
        nothing = mask_rows_that_see_nothing(attention_mask)
    if factors is None and nothing is None:
        output, weights = eager(module, query, key, value, attention_mask, **kwargs)
    else:
        with ReweightedProducts(factors, nothing) as watch:
            output, _ = eager(module, query, key, value, attention_mask, **kwargs)
        if watch.weights is None:
            raise Unsupported(
                f"{type(module).__name__} multiplies its values in a way of its own, so none can be hidden."
            )
        weights = watch.weights

    if "attention" in call.record:
        call.maps.append(Seen(kind_of_attention(module), weights, call.block))
    return output, weights


def kind_of_attention(module: nn.Module) -> str:
    """Which map an attention module of a view gives: self, or encoder, decoder, cross."""
    kind: str = vars(module).get("raison_kind", "self")  # set when the view is made
    return kind


def mask_rows_that_see_nothing(mask: torch.Tensor) -> torch.Tensor:
    """[b 1 s 1] of an additive mask [b 1 s t]: True where every key is hidden."""
    hidden = mask <= torch.finfo(mask.dtype).min / 2
    return hidden.all(-1, keepdim=True)


def is_fusible(module: nn.Module, call: Call, key: torch.Tensor) -> bool:
    """Long texts that nobody looks into run as the user's model runs them; short ones cost the same either way."""
    if key.shape[2] < LONG or not vars(module).get("raison_fused"):
        return False
    looked_into = call.blocked or call.record or call.heads is not None
    return not looked_into and not torch.is_grad_enabled()


# -- masks ----------------------------------------------------------------------------------------------------


def attention_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int = 0,
    kv_offset: int = 0,
    mask_function: MaskRule | None = None,
    attention_mask: torch.Tensor | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    **_: object,
) -> torch.Tensor:
    """[b 1 s t] additive: 0 where query s may see key t, the lowest number of the dtype elsewhere."""
    call = running_call.get()
    if call is not None and call.packed is not None:
        return call.packed.mask(mask_function, dtype)

    allowed = torch.ones(batch_size, 1, q_length, kv_length, dtype=torch.bool, device=device)
    if mask_function is not None:
        query = torch.arange(q_length, device=device)[None] + q_offset
        key = torch.arange(kv_length, device=device)[None] + kv_offset
        positions = original_positions_in_view(call)
        runs_whole = q_length == kv_length and not (q_offset or kv_offset)
        if positions is not None and runs_whole and positions.shape[1] == q_length:
            query = key = positions.to(device)
        examples = torch.arange(batch_size, device=device)[:, None, None, None]
        heads = torch.zeros(1, 1, 1, 1, dtype=torch.long, device=device)
        allowed = allowed & mask_function(
            examples, heads, query[:, None, :, None], key[:, None, None, :]
        )
    if attention_mask is not None:
        end = kv_offset + kv_length
        visible = attention_mask.to(device=device, dtype=torch.bool)[:, kv_offset:end]
        allowed = allowed & visible[:, None, None, :]

    if call is not None and not call.blocked:
        every_row_sees = bool(allowed.any(-1).all())
        call.blocked = not every_row_sees  # attention must not average such a row
    zero = torch.zeros((), dtype=dtype, device=device)
    return torch.where(allowed, zero, torch.finfo(dtype).min)


def original_positions_in_view(call: Call | None) -> torch.Tensor | None:
    """[b t] of the stream that runs last, where the call has any."""
    if call is None or call.positions is None:
        return None
    return call.positions[-1]


# -- hooks on blocks, word embeddings, LM head and activations ------------------------------------------------


def begin_block(module: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    """Before a block: count it, and keep what it is given for those who want to run it again."""
    call = running_call.get()
    if call is None:
        return
    call.block += 1
    if "blocks" in call.record:
        call.blocks.append(Block(module, args, kwargs, len(call.maps)))


def end_block(
    module: nn.Module, args: object, output: torch.Tensor | tuple[torch.Tensor, ...]
) -> None:
    """Behind a block: keep what it gives."""
    call = running_call.get()
    if call is None or "blocks" not in call.record:
        return
    block = call.blocks[-1]
    block.output = output if isinstance(output, torch.Tensor) else output[0]
    block.maps = len(call.maps) - block.before


def replace_embeddings(
    module: nn.Module, args: object, output: torch.Tensor
) -> torch.Tensor | None:
    """Behind the word table: replace, blank or record the embeddings."""
    call = running_call.get()
    if call is None:
        return None
    stream = call.stream
    call.stream += 1
    if call.replace is not None:
        replacement = call.replace[stream]
        if replacement is not None:
            output = replacement.to(output)
    if call.present is not None:
        present = call.present[stream]
        if present is not None:
            output = output * present[..., None].to(output)
    if "embeddings" in call.record:
        output = output.detach().requires_grad_(True)
        call.leaves.append(output)
    return output


def keep_asked_rows_at_head(
    module: nn.Module, args: tuple[torch.Tensor, ...]
) -> tuple[torch.Tensor, ...] | None:
    """Before the LM head: compute the vocabulary only where somebody reads it."""
    call = running_call.get()
    if call is None or call.rows is None:
        return None
    hidden = args[0]  # [b t d]
    index = call.rows.to(hidden.device)[..., None].expand(-1, -1, hidden.shape[-1])
    return (hidden.gather(1, index), *args[1:])


def activation(plain: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """An activation that is written in Python, as one function that a mode can see."""
    if torch.overrides.has_torch_function((x,)):
        result: torch.Tensor = torch.overrides.handle_torch_function(activation, (x,), plain, x)
        return result
    return plain(x)
