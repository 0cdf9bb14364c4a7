"""Which token may attend to which, by original positions.

transformers builds its masks from *indices*. A rationale runs only the kept tokens, so their indices close
up while their positions do not: a window counted in indices would reach too far back. So the mask function
that belongs to raison's attention asks the family's own rule (causal, window, chunk, both ways) about
original positions instead. The result is additive, because eager attention would add a boolean as 0 or 1.
"""

from __future__ import annotations

from typing import Any

import torch

from raison.models.attention.call import Call, MaskRule, current

__all__ = ["attention_mask"]


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
    **_: Any,
) -> torch.Tensor:
    """[b 1 s t] additive: 0 where query s may see key t, the lowest number of the dtype elsewhere."""
    call = current()
    if call is not None and call.packed is not None:
        return call.packed.mask(mask_function, dtype)

    allowed = torch.ones(batch_size, 1, q_length, kv_length, dtype=torch.bool, device=device)
    if mask_function is not None:
        query = torch.arange(q_length, device=device)[None] + q_offset
        key = torch.arange(kv_length, device=device)[None] + kv_offset
        positions = original_positions(call)
        runs_whole = q_length == kv_length and not (q_offset or kv_offset)
        if positions is not None and runs_whole and positions.shape[1] == q_length:
            query = key = positions.to(device)
        examples = torch.arange(batch_size, device=device)[:, None, None, None]
        heads = torch.zeros(1, 1, 1, 1, dtype=torch.long, device=device)
        allowed = allowed & mask_function(
            examples, heads, query[:, None, :, None], key[:, None, None, :]
        )
    if attention_mask is not None:
        visible = attention_mask.to(device=device, dtype=torch.bool)[
            :, kv_offset : kv_offset + kv_length
        ]
        allowed = allowed & visible[:, None, None, :]

    if call is not None and not call.blocked:
        call.blocked = not bool(
            allowed.any(-1).all()
        )  # some row sees nothing: attention must not average it
    zero = torch.zeros((), dtype=dtype, device=device)
    return torch.where(allowed, zero, torch.finfo(dtype).min)


def original_positions(call: Call | None) -> torch.Tensor | None:
    """[b t] of the stream that runs last, where the call has any."""
    if call is None or call.positions is None:
        return None
    return call.positions[-1]
