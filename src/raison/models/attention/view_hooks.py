"""Hooks of a view on its blocks, its word embeddings and its LM head: they do what the running call asks for."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from raison.models.attention.call import Block, current

__all__ = ["begin_block", "end_block", "keep_asked_rows", "replace_embeddings"]


def begin_block(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Before a block: count it, and keep what it is given for those who want to run it again."""
    call = current()
    if call is None:
        return
    call.block += 1
    if "blocks" in call.record:
        call.blocks.append(Block(module, args, kwargs, len(call.maps)))


def end_block(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
    """Behind a block: keep what it gives."""
    call = current()
    if call is None or "blocks" not in call.record:
        return
    block = call.blocks[-1]
    block.output = output if isinstance(output, torch.Tensor) else output[0]
    block.maps = len(call.maps) - block.before


def replace_embeddings(
    module: nn.Module, args: tuple[Any, ...], output: torch.Tensor
) -> torch.Tensor | None:
    """Behind the word table: replace, blank or record the embeddings."""
    call = current()
    if call is None:
        return None
    stream = call.stream
    call.stream += 1
    replacement = None if call.replace is None else call.replace[stream]
    if replacement is not None:
        output = replacement.to(output)
    present = None if call.present is None else call.present[stream]
    if present is not None:
        output = output * present[..., None].to(output)
    if "embeddings" in call.record:
        output = output.detach().requires_grad_(True)
        call.leaves.append(output)
    return output


def keep_asked_rows(module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Before the LM head: compute the vocabulary only where somebody reads it."""
    call = current()
    if call is None or call.rows is None:
        return None
    hidden = args[0]  # [b t d]
    index = call.rows.to(hidden.device)[..., None].expand(-1, -1, hidden.shape[-1])
    return (hidden.gather(1, index), *args[1:])
