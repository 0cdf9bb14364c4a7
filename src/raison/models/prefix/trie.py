"""Prefixes of kept tokens as nodes of a tree, stored in pools, and how a model runs new ones in blocks of a packed
sequence.

In a causal model the state at a kept token depends only on the kept tokens up to it. So a node is a distinct prefix,
whoever asks for it: candidates, steps, targets and texts share nodes, and with them keys, values and hidden states.

In a packed sequence every token gathers the keys and values of its own ancestors. The family's own eager attention does
the arithmetic, each query with its ancestors as a batch row of its own, so soft caps, sinks and biases need no code
here; the family's own mask rule is asked about original positions, so windows need none either.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import nn

from raison.models.attention.call import EagerAttention, MaskRule

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["Packed", "Trie", "chains_of"]

ROOT = -1
FIRST = 256  # slots at the start; doubled when full
FLOATS = 2**22  # keys gathered at a time: stays in the cache of most machines
CHAIN = 8  # nodes in a row from which asking them at once pays (4 to 12 cost the same, 32 a quarter more)


class Trie:
    """The nodes of one view, with what the model computed at each of them."""

    def __init__(self, view: PreTrainedModel):
        # nodes belong to these weights, and an id is only valid while its object lives
        self.view = view
        # (parent, stem, token, position) -> slot
        self._slots: dict[tuple[int, Hashable, int, int], int] = {}
        self.parent = np.zeros(FIRST, np.int64)
        self.token = np.zeros(FIRST, np.int64)
        self.position = np.zeros(FIRST, np.int64)
        self.depth = np.zeros(FIRST, np.int64)
        # [slot] what the node stands on: a set of source tokens, or nothing
        self.stems: list[Hashable] = []
        self.keys: list[torch.Tensor] = []  # per layer [kv slots d]
        self.values: list[torch.Tensor] = []
        self.hidden: torch.Tensor | None = None  # [slots d] last hidden state
        # encoder states [l d] of each set of source tokens
        self.sources: dict[Hashable, torch.Tensor] = {}

    def __len__(self) -> int:
        return len(self.stems)

    # -- nodes --------------------------------------------------------------------------------------

    def path(
        self, tokens: Sequence[int], positions: Sequence[int], stem: Hashable = None
    ) -> list[int]:
        """Slots of the prefixes of one set, in order; those that were unknown are new."""
        parent = ROOT
        path = []
        slots = self._slots
        for token, position in zip(tokens, positions, strict=True):
            key = (parent, stem, token, position)
            slot = slots.get(key)
            if slot is None:
                slot = self._add(parent, stem, token, position)
                slots[key] = slot
            path.append(slot)
            parent = slot
        return path

    def known(
        self, tokens: Sequence[int], positions: Sequence[int], stem: Hashable = None
    ) -> list[int]:
        """Slots of the prefixes of one set that were computed already."""
        parent = ROOT
        path = []
        for token, position in zip(tokens, positions, strict=True):
            slot = self._slots.get((parent, stem, token, position))
            if slot is None:
                break
            path.append(slot)
            parent = slot
        return path

    def _add(self, parent: int, stem: Hashable, token: int, position: int) -> int:
        """The slot of a new node."""
        slot = len(self.stems)
        if slot == len(self.parent):
            room = 2 * slot
            self.parent = roomy_column(self.parent, room)
            self.token = roomy_column(self.token, room)
            self.position = roomy_column(self.position, room)
            self.depth = roomy_column(self.depth, room)
        self.stems.append(stem)
        self.parent[slot] = parent
        self.token[slot] = token
        self.position[slot] = position
        self.depth[slot] = 1 if parent == ROOT else self.depth[parent] + 1
        return slot

    def ancestors(self, slots: np.ndarray) -> np.ndarray:
        """[q d] the path to each slot, itself included; behind its end the slot itself again."""
        depth = self.depth[slots]
        found = np.repeat(slots[:, None], int(depth.max()), axis=1)
        rows = np.arange(len(slots))  # whose path goes on
        here = slots.copy()
        place = depth - 1
        while True:
            found[rows, place[rows]] = here
            here = self.parent[here]
            inside = here != ROOT
            if not inside.any():
                return found
            rows = rows[inside]
            here = here[inside]
            place[rows] -= 1

    # -- what the model computed --------------------------------------------------------------------

    def write(
        self, layer: int, slots: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> None:
        """Keep keys and values [kv q d] of one layer."""
        room = len(self.parent)
        for pools, new in ((self.keys, key), (self.values, value)):
            if layer == len(pools):
                heads, _, width = new.shape
                pools.append(new.new_zeros(heads, room, width))
            pools[layer] = pool_with_room(pools[layer], room, 1)
            pools[layer].index_copy_(1, slots, new)

    def write_hidden(self, slots: torch.Tensor, hidden: torch.Tensor) -> None:
        """Keep the last hidden states [q d]."""
        if self.hidden is None:
            self.hidden = hidden.new_zeros(len(self.parent), hidden.shape[1])
        self.hidden = pool_with_room(self.hidden, len(self.parent), 0)
        self.hidden.index_copy_(0, slots, hidden)

    @property
    def bytes(self) -> int:
        """What the nodes hold; pools may have up to twice the room."""
        per_slot = 0
        for pool in (*self.keys, *self.values):
            heads, _, width = pool.shape
            per_slot += heads * width * pool.element_size()
        if self.hidden is not None:
            per_slot += self.hidden.shape[1] * self.hidden.element_size()
        of_sources = sum(state.nbytes for state in self.sources.values())
        return per_slot * len(self) + of_sources

    def forget(self, kept: Iterable[int] = ()) -> None:
        """Drop every node that is not on a path to one of `kept`; what is dropped is computed again when asked for."""
        alive: set[int] = set()
        for slot in kept:
            while slot != ROOT and slot not in alive:
                alive.add(slot)
                slot = int(self.parent[slot])
        # parents have lower slots than children, before and after
        order = np.array(sorted(alive), np.int64)
        new_slots = {int(old): place for place, old in enumerate(order)}
        new_slots[ROOT] = ROOT
        slots = {}
        for (parent, stem, token, position), slot in self._slots.items():
            if slot in alive:
                slots[new_slots[parent], stem, token, position] = new_slots[slot]
        self._slots = slots

        room = max(FIRST, 1 << max(0, int(len(order) - 1).bit_length()))
        parents = [new_slots[int(old)] for old in self.parent[order]]
        self.parent = roomy_column(np.array(parents, np.int64), room)
        self.token = roomy_column(self.token[order], room)
        self.position = roomy_column(self.position[order], room)
        self.depth = roomy_column(self.depth[order], room)
        self.stems = [self.stems[old] for old in order]
        used = set(self.stems)
        self.sources = {stem: state for stem, state in self.sources.items() if stem in used}

        index = torch.from_numpy(order)
        self.keys = [rows_of_pool(pool, index, room, 1) for pool in self.keys]
        self.values = [rows_of_pool(pool, index, room, 1) for pool in self.values]
        if self.hidden is not None:
            self.hidden = rows_of_pool(self.hidden, index, room, 0)


def roomy_column(column: np.ndarray, room: int) -> np.ndarray:
    """The numbers with zeros behind them, as many as there is room for."""
    result = np.zeros(room, np.int64)
    result[: len(column)] = column
    return result


def rows_of_pool(pool: torch.Tensor, index: torch.Tensor, room: int, dim: int) -> torch.Tensor:
    """Some slots of a pool, with room for more behind them."""
    return pool_with_room(pool.index_select(dim, index.to(pool.device)), room, dim)


def pool_with_room(pool: torch.Tensor, room: int, dim: int) -> torch.Tensor:
    """The pool with at least `room` slots along `dim`."""
    if pool.shape[dim] >= room:
        return pool
    shape = list(pool.shape)
    shape[dim] = room - pool.shape[dim]
    return torch.cat([pool, pool.new_zeros(shape)], dim)


# -- new nodes as one packed sequence ------------------------------------------------------------------------


class QueryBlock(NamedTuple):
    """Queries of a packed sequence that run together."""

    rows: slice
    is_chain: bool  # each is the next one's parent
    width: int  # how far back the longest of them looks


@dataclass
class KeyPool:
    """Where the queries of one attention find their keys and values."""

    keys: torch.Tensor  # [kv slots d]
    values: torch.Tensor
    index: torch.Tensor  # [q w] the slots of each query
    lengths: torch.Tensor  # [q] how many of them it has
    mask: torch.Tensor  # [1 1 q w] additive
    bias: torch.Tensor | None = None  # [1 h q w]


@dataclass
class Packed:
    """One packed call, as the attention of a view sees it."""

    trie: Trie
    slots: torch.Tensor  # [q]
    ancestors: torch.Tensor  # [q d]
    depth: torch.Tensor  # [q]
    positions: torch.Tensor  # [q]
    seen: torch.Tensor  # [q d] positions of the ancestors
    # runs of nodes that are each other's parents, long enough to be asked at once
    chains: list[slice]
    # [q l] where its source stands among the packed encoder states
    source: torch.Tensor | None = None
    there: torch.Tensor | None = None  # [q l] False behind the end of a source
    layer: int = 0  # self-attention calls so far
    plans: dict[bool, list[QueryBlock]] = field(default_factory=dict)  # by cross or self

    def mask(self, rule: MaskRule | None, dtype: torch.dtype) -> torch.Tensor:
        """[1 1 q d] additive: the family's rule about original positions, and nothing behind the path."""
        device = self.seen.device
        allowed = torch.arange(self.seen.shape[1], device=device) < self.depth[:, None]
        if rule is not None:
            first = torch.zeros(1, 1, 1, 1, dtype=torch.long, device=device)
            queries = self.positions[None, None, :, None]
            allowed = allowed & rule(first, first, queries, self.seen[None, None])
        zero = torch.zeros((), dtype=dtype, device=device)
        additive = zero.where(allowed, torch.finfo(dtype).min)
        return additive.reshape(1, 1, *allowed.shape[-2:])

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
    ) -> tuple[torch.Tensor, None]:
        """[1 q h d] attention of every query over its own ancestors (or its own source)."""
        bias = kwargs.pop("position_bias", None)
        if cross:
            pool = self.pool_of_sources(query, key, value)
        else:
            pool = self.pool_of_ancestors(key, value, mask, bias)
        if cross not in self.plans:
            width = pool.keys.shape[0] * pool.keys.shape[2]
            self.plans[cross] = list(
                blocks_of_queries(pool.lengths.cpu().numpy(), self.chains, width)
            )

        _, heads, queries, _ = query.shape
        width = pool.values.shape[-1]
        result = query.new_zeros(queries, heads, width)  # nothing seen, nothing taken
        for block in self.plans[cross]:
            result[block.rows] = attend_in_block(eager, module, query, pool, block, kwargs)
        if cross:
            result[pool.lengths == 0] = 0.0
        return result[None], None

    def pool_of_sources(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> KeyPool:
        """The encoder states of the source that each query stands on."""
        if self.source is None or self.there is None:
            raise ValueError("nodes that stand on no source have no cross-attention")
        absent = query.new_full((), torch.finfo(query.dtype).min)
        return KeyPool(
            keys=key[0],
            values=value[0],
            index=self.source,
            lengths=self.there.sum(1),
            mask=query.new_zeros(()).where(self.there, absent)[None, None],
        )

    def pool_of_ancestors(
        self,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        bias: torch.Tensor | None,
    ) -> KeyPool:
        """The nodes' keys and values in the next layer, those that are new among them."""
        if mask is None:
            raise ValueError("packed nodes are never without a mask")
        self.trie.write(self.layer, self.slots, key[0], value[0])
        pool = KeyPool(
            keys=self.trie.keys[self.layer],
            values=self.trie.values[self.layer],
            index=self.ancestors,
            lengths=self.depth,
            mask=mask,
            bias=bias,
        )
        self.layer += 1
        return pool


def attend_in_block(
    eager: EagerAttention,
    module: nn.Module,
    query: torch.Tensor,
    pool: KeyPool,
    block: QueryBlock,
    kwargs: dict[str, Any],
) -> torch.Tensor:
    """[rows h d] attention of some queries [1 h q d], by the family's own function.

    A chain asks about the path to its end, all queries at once; others each about a path of their own.
    """
    rows, is_chain, width = block
    paths = slice(rows.stop - 1, rows.stop) if is_chain else rows
    slots = pool.index[paths, :width].reshape(-1)
    shape = (pool.keys.shape[0], paths.stop - paths.start, width, -1)
    keys = pool.keys.index_select(1, slots).view(shape).transpose(0, 1)
    values = pool.values.index_select(1, slots).view(shape).transpose(0, 1)

    asked, shown = query[0, :, rows], pool.mask[0, 0, rows, :width]
    if pool.bias is not None:
        near = pool.bias[0, :, rows, :width]
        kwargs = {**kwargs, "position_bias": near[None] if is_chain else row_by_row(near)}
    if is_chain:
        found, _ = eager(module, asked[None], keys, values, shown[None, None], **kwargs)
        return found[0]
    found, _ = eager(module, row_by_row(asked), keys, values, shown[:, None, None], **kwargs)
    return found[:, 0]


def blocks_of_queries(lengths: np.ndarray, chains: list[slice], width: int) -> Iterator[QueryBlock]:
    """Queries that run together.

    Long chains, in which each node is the next one's parent, run at once; the rest in blocks whose keys fit the cache.
    """
    start = 0
    for chain in [*chains, slice(len(lengths), len(lengths))]:
        while start < chain.start:
            longest = np.maximum.accumulate(np.maximum(lengths[start : chain.start], 1))
            fits = longest * np.arange(1, len(longest) + 1) * width <= FLOATS
            stop = start + max(1, int(fits.sum()))
            if lengths[start:stop].any():
                yield QueryBlock(slice(start, stop), False, int(lengths[start:stop].max()))
            start = stop
        if chain.stop > chain.start and lengths[chain].any():
            yield QueryBlock(chain, True, int(lengths[chain].max()))
        start = chain.stop


def row_by_row(tensor: torch.Tensor) -> torch.Tensor:
    """[h q d] as [q h 1 d]: every query is a row of the batch."""
    return tensor.transpose(0, 1)[:, :, None]


def chains_of(parent: np.ndarray, slots: np.ndarray) -> list[slice]:
    """Where long runs of nodes stand, each the parent of the next (and so all on the same source)."""
    ends = np.flatnonzero(parent[slots[1:]] != slots[:-1]) + 1
    borders = [0, *ends.tolist(), len(slots)]
    return [slice(a, b) for a, b in pairwise(borders) if b - a >= CHAIN]
