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
        if parent == ROOT:
            self.depth[slot] = 1
        else:
            self.depth[slot] = self.depth[parent] + 1
        return slot

    def ancestors(self, slots: np.ndarray) -> np.ndarray:
        """[q d] the path to each slot, itself included; behind its end the slot itself again."""
        depth = self.depth[slots]
        deepest = int(depth.max())
        found = np.repeat(slots[:, None], deepest, axis=1)
        rows = np.arange(len(slots))  # whose path goes on
        here = slots.copy()
        place = depth - 1
        while True:
            columns = place[rows]
            found[rows, columns] = here
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
        self.write_in_pool(self.keys, layer, slots, key)
        self.write_in_pool(self.values, layer, slots, value)

    def write_in_pool(
        self, pools: list[torch.Tensor], layer: int, slots: torch.Tensor, new: torch.Tensor
    ) -> None:
        """Keep new keys, or new values, in the pool of their layer."""
        room = len(self.parent)
        if layer == len(pools):
            heads, _, width = new.shape
            empty = new.new_zeros(heads, room, width)
            pools.append(empty)
        pool = pool_with_room(pools[layer], room, 1)
        pool.index_copy_(1, slots, new)
        pools[layer] = pool

    def write_hidden(self, slots: torch.Tensor, hidden: torch.Tensor) -> None:
        """Keep the last hidden states [q d]."""
        room = len(self.parent)
        if self.hidden is None:
            _, width = hidden.shape
            self.hidden = hidden.new_zeros(room, width)
        self.hidden = pool_with_room(self.hidden, room, 0)
        self.hidden.index_copy_(0, slots, hidden)

    @property
    def bytes(self) -> int:
        """What the nodes hold; pools may have up to twice the room."""
        per_slot = 0
        for pool in (*self.keys, *self.values):
            heads, _, width = pool.shape
            per_slot += heads * width * pool.element_size()
        if self.hidden is not None:
            _, width = self.hidden.shape
            per_slot += width * self.hidden.element_size()

        of_nodes = per_slot * len(self)
        of_sources = sum(state.nbytes for state in self.sources.values())
        return of_nodes + of_sources

    def forget(self, kept: Iterable[int] = ()) -> None:
        """Drop every node that is not on a path to one of `kept`; what is dropped is computed again when asked for."""
        alive = self.with_ancestors(kept)
        # parents have lower slots than children, before and after
        order = sorted(alive)
        new_slots = {old: place for place, old in enumerate(order)}
        new_slots[ROOT] = ROOT

        slots = {}
        for (parent, stem, token, position), slot in self._slots.items():
            if slot in alive:
                new_parent = new_slots[parent]
                slots[new_parent, stem, token, position] = new_slots[slot]
        self._slots = slots

        index = np.array(order, np.int64)
        room = room_for(len(order))
        self.forget_columns(index, new_slots, room)
        self.forget_states(index, room)

    def with_ancestors(self, slots: Iterable[int]) -> set[int]:
        """These nodes, and all on the paths to them."""
        found: set[int] = set()
        for slot in slots:
            while slot != ROOT and slot not in found:
                found.add(slot)
                slot = int(self.parent[slot])
        return found

    def forget_columns(self, kept: np.ndarray, new_slots: dict[int, int], room: int) -> None:
        """Keep what is known of the nodes in some slots, and let their parents be found in the new slots."""
        old_parents = self.parent[kept].tolist()
        parents = [new_slots[old] for old in old_parents]
        new_parents = np.array(parents, np.int64)
        tokens = self.token[kept]
        positions = self.position[kept]
        depths = self.depth[kept]

        self.parent = roomy_column(new_parents, room)
        self.token = roomy_column(tokens, room)
        self.position = roomy_column(positions, room)
        self.depth = roomy_column(depths, room)
        self.stems = [self.stems[old] for old in kept]

    def forget_states(self, kept: np.ndarray, room: int) -> None:
        """Keep what the model computed at the nodes in some slots, and of the sources that they stand on."""
        used = set(self.stems)
        sources = {}
        for stem, state in self.sources.items():
            if stem in used:
                sources[stem] = state
        self.sources = sources

        index = torch.from_numpy(kept)
        self.keys = [rows_of_pool(pool, index, room, 1) for pool in self.keys]
        self.values = [rows_of_pool(pool, index, room, 1) for pool in self.values]
        if self.hidden is not None:
            self.hidden = rows_of_pool(self.hidden, index, room, 0)


def room_for(nodes: int) -> int:
    """How many slots there are for so many nodes: a power of two."""
    power = max(0, (nodes - 1).bit_length())
    return max(FIRST, 1 << power)


def roomy_column(column: np.ndarray, room: int) -> np.ndarray:
    """The numbers with zeros behind them, as many as there is room for."""
    result = np.zeros(room, np.int64)
    used = len(column)
    result[:used] = column
    return result


def rows_of_pool(pool: torch.Tensor, index: torch.Tensor, room: int, dim: int) -> torch.Tensor:
    """Some slots of a pool, with room for more behind them."""
    index_there = index.to(pool.device)
    rows = pool.index_select(dim, index_there)
    return pool_with_room(rows, room, dim)


def pool_with_room(pool: torch.Tensor, room: int, dim: int) -> torch.Tensor:
    """The pool with at least `room` slots along `dim`."""
    missing = room - pool.shape[dim]
    if missing <= 0:
        return pool
    shape = list(pool.shape)
    shape[dim] = missing
    empty = pool.new_zeros(shape)
    return torch.cat([pool, empty], dim)


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
        _, deepest = self.seen.shape
        places = torch.arange(deepest, device=device)
        allowed = places < self.depth[:, None]
        if rule is not None:
            first = torch.zeros(1, 1, 1, 1, dtype=torch.long, device=device)
            queries = self.positions[None, None, :, None]
            keys = self.seen[None, None]
            by_rule = rule(first, first, queries, keys)
            allowed = allowed & by_rule

        zero = torch.zeros((), dtype=dtype, device=device)
        lowest = torch.finfo(dtype).min
        additive = zero.where(allowed, lowest)
        *_, rows, columns = allowed.shape
        return additive.reshape(1, 1, rows, columns)

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
            key_heads, _, key_width = pool.keys.shape
            lengths = pool.lengths.cpu().numpy()
            blocks = blocks_of_queries(lengths, self.chains, key_heads * key_width)
            self.plans[cross] = list(blocks)

        _, heads, queries, _ = query.shape
        *_, width = pool.values.shape
        result = query.new_zeros(queries, heads, width)  # nothing seen, nothing taken
        for block in self.plans[cross]:
            result[block.rows] = attend_in_block(eager, module, query, pool, block, kwargs)
        if cross:
            sees_nothing = pool.lengths == 0
            result[sees_nothing] = 0.0
        return result[None], None

    def pool_of_sources(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> KeyPool:
        """The encoder states of the source that each query stands on."""
        if self.source is None or self.there is None:
            raise ValueError("nodes that stand on no source have no cross-attention")
        lowest = torch.finfo(query.dtype).min
        absent = query.new_full((), lowest)
        present = query.new_zeros(())
        additive = present.where(self.there, absent)
        return KeyPool(
            keys=key[0],
            values=value[0],
            index=self.source,
            lengths=self.there.sum(1),
            mask=additive[None, None],
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
        layer = self.layer
        self.layer += 1
        self.trie.write(layer, self.slots, key[0], value[0])
        return KeyPool(
            keys=self.trie.keys[layer],
            values=self.trie.values[layer],
            index=self.ancestors,
            lengths=self.depth,
            mask=mask,
            bias=bias,
        )


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
    paths = rows
    if is_chain:
        paths = slice(rows.stop - 1, rows.stop)
    index = pool.index[paths, :width]
    keys = keys_of_paths(pool.keys, index)
    values = keys_of_paths(pool.values, index)

    asked = query[0, :, rows]
    shown = pool.mask[0, 0, rows, :width]
    near = None
    if pool.bias is not None:
        near = pool.bias[0, :, rows, :width]

    if is_chain:
        if near is not None:
            kwargs = {**kwargs, "position_bias": near[None]}
        found, _ = eager(module, asked[None], keys, values, shown[None, None], **kwargs)
        return found[0]

    if near is not None:
        kwargs = {**kwargs, "position_bias": row_by_row(near)}
    queries = row_by_row(asked)
    found, _ = eager(module, queries, keys, values, shown[:, None, None], **kwargs)
    return found[:, 0]


def keys_of_paths(pool: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """[n kv w d] the keys, or the values, in the slots [n w] of several paths."""
    paths, width = index.shape
    heads = pool.shape[0]
    slots = index.reshape(-1)
    flat = pool.index_select(1, slots)
    by_path = flat.view(heads, paths, width, -1)
    return by_path.transpose(0, 1)


def blocks_of_queries(lengths: np.ndarray, chains: list[slice], width: int) -> Iterator[QueryBlock]:
    """Queries that run together.

    Long chains, in which each node is the next one's parent, run at once; the rest in blocks whose keys fit the cache.
    """
    start = 0
    end = len(lengths)
    for chain in [*chains, slice(end, end)]:
        while start < chain.start:
            between = lengths[start : chain.start]
            stop = start + count_that_fits(between, width)
            rows = slice(start, stop)
            longest = int(lengths[rows].max())
            if longest:
                yield QueryBlock(rows, is_chain=False, width=longest)
            start = stop
        longest = int(lengths[chain].max(initial=0))
        if longest:
            yield QueryBlock(chain, is_chain=True, width=longest)
        start = chain.stop


def count_that_fits(lengths: np.ndarray, width: int) -> int:
    """How many queries of these lengths run together, from the first one on: at least one."""
    at_least_one = np.maximum(lengths, 1)
    longest = np.maximum.accumulate(at_least_one)
    counts = np.arange(1, len(longest) + 1)
    fits = longest * counts * width <= FLOATS
    return max(1, int(fits.sum()))


def row_by_row(tensor: torch.Tensor) -> torch.Tensor:
    """[h q d] as [q h 1 d]: every query is a row of the batch."""
    return tensor.transpose(0, 1)[:, :, None]


def chains_of(parent: np.ndarray, slots: np.ndarray) -> list[slice]:
    """Where long runs of nodes stand, each the parent of the next (and so all on the same source)."""
    breaks = parent[slots[1:]] != slots[:-1]
    starts = np.flatnonzero(breaks) + 1
    borders = [0, *starts.tolist(), len(slots)]

    chains = []
    for start, end in pairwise(borders):
        if end - start >= CHAIN:
            chains.append(slice(start, end))
    return chains
