"""A `Call`: what one forward pass of a view should use, record or change, and the call that runs in this context.

A call travels in a context variable while its pass runs, so threads can't disturb each other and nothing has to be
undone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import nn

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = [
    "Attended",
    "Attention",
    "Block",
    "Call",
    "EagerAttention",
    "MaskRule",
    "PackedNodes",
    "Seen",
    "running_call",
]

# output [b s h d] and weights [b h s t]; a fused kernel has none
Attended = tuple[torch.Tensor, torch.Tensor | None]
Attention = Callable[..., Attended]
EagerAttention = Callable[..., tuple[torch.Tensor, torch.Tensor]]
# (example, head, query, key) -> whether the query may see the key
MaskRule = Callable[..., torch.Tensor]


class PackedNodes(Protocol):
    """Nodes of a trie that run as one sequence: each token attends to its own ancestors."""

    positions: torch.Tensor  # [q]
    seen: torch.Tensor  # [q d] positions of the ancestors

    def mask(self, rule: MaskRule | None, dtype: torch.dtype) -> torch.Tensor:
        """[1 1 q d] additive."""

    def attend(
        self,
        eager: EagerAttention,
        module: nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        *,
        cross: bool,
        **kwargs: Any,
    ) -> Attended:
        """The family's own attention, of every query over its own ancestors."""


@dataclass
class Seen:
    """One attention map of a forward pass: kind is self, encoder, decoder or cross."""

    kind: str
    weights: torch.Tensor  # [b h s t]
    block: int  # the block it ran in, counted over all that ran; -1 outside of them


@dataclass
class Block:
    """One call of a block: what it was given and what it gave."""

    module: nn.Module
    args: tuple[object, ...]
    kwargs: dict[str, object]
    before: int  # attention maps seen before it
    maps: int = 0  # attention maps seen in it
    output: torch.Tensor = field(default_factory=lambda: torch.empty(0))


@dataclass
class Call:
    """What one forward pass should record or change; lives in a context variable while it runs."""

    # what it shall use
    view: PreTrainedModel | None = None  # the model that runs, whatever its class
    # per stream [b t]: original positions of the tokens
    positions: list[torch.Tensor] | None = None
    # per stream [b t d]: word embeddings to use instead
    replace: list[torch.Tensor | None] | None = None
    # per stream [b t]: False makes the word embedding zero
    present: list[torch.Tensor | None] | None = None
    rows: torch.Tensor | None = None  # [b m]: the only rows that the LM head computes
    packed: PackedNodes | None = None  # what runs is nodes of a trie
    # [n 1 d]: hidden states behind the blocks, from which it goes on
    tail: torch.Tensor | None = None
    heads: torch.Tensor | None = None  # [l h]: factor of each attention head, counted over all maps

    # what it shall record, and what was recorded
    record: frozenset[str] = frozenset()  # attention, softmaxes, embeddings, crossing, blocks
    maps: list[Seen] = field(default_factory=list)
    # keys and values of each cross-attention
    crossing: list[list[torch.Tensor]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    leaves: list[torch.Tensor] = field(default_factory=list)  # recorded word embeddings, per stream

    # how far it is
    blocked: bool = False  # some attention row may see nothing
    block: int = -1  # the block that runs, or ran last
    layer: int = 0  # attention calls so far
    stream: int = 0  # embedding calls so far


# the call that runs in this context, if any
running_call: ContextVar[Call | None] = ContextVar("raison_call", default=None)
