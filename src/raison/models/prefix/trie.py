"""Prefixes of kept tokens as nodes of a tree, each computed once.

In a causal model the state at a kept token depends only on the kept tokens up to it. So a node is a distinct prefix,
whoever asks for it: candidates, steps, targets and texts share nodes, and with them keys, values and hidden states.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import torch

__all__ = ["Trie"]

ROOT = -1
FIRST = 256  # slots at the start; doubled when full


class Trie:
    """The nodes of one view, with what the model computed at each of them."""

    def __init__(self, view: Any):
        self.view = (
            view  # nodes belong to these weights, and an id is only valid while its object lives
        )
        self._slots: dict[
            tuple[int, Hashable, int, int], int
        ] = {}  # (parent, stem, token, position) -> slot
        self.parent = np.zeros(FIRST, np.int64)
        self.token = np.zeros(FIRST, np.int64)
        self.position = np.zeros(FIRST, np.int64)
        self.depth = np.zeros(FIRST, np.int64)
        self.stems: list[
            Hashable
        ] = []  # [slot] what the node stands on: a set of source tokens, or nothing
        self.keys: list[torch.Tensor] = []  # per layer [kv slots d]
        self.values: list[torch.Tensor] = []
        self.hidden: torch.Tensor | None = None  # [slots d] last hidden state
        self.sources: dict[
            Hashable, torch.Tensor
        ] = {}  # encoder states [l d] of each set of source tokens

    def __len__(self) -> int:
        return len(self.stems)

    # -- nodes --------------------------------------------------------------------------------------

    def path(
        self, tokens: Sequence[int], positions: Sequence[int], stem: Hashable = None
    ) -> list[int]:
        """Slots of the prefixes of one set, in order; those that were unknown are new."""
        parent, path = ROOT, []
        slots = self._slots
        for token, position in zip(tokens, positions, strict=True):
            key = (parent, stem, token, position)
            slot = slots.get(key)
            if slot is None:
                slot = slots[key] = self._add(parent, stem, token, position)
            path.append(slot)
            parent = slot
        return path

    def known(
        self, tokens: Sequence[int], positions: Sequence[int], stem: Hashable = None
    ) -> list[int]:
        """Slots of the prefixes of one set that were computed already."""
        parent, path = ROOT, []
        for token, position in zip(tokens, positions, strict=True):
            slot = self._slots.get((parent, stem, token, position))
            if slot is None:
                break
            path.append(slot)
            parent = slot
        return path

    def _add(self, parent: int, stem: Hashable, token: int, position: int) -> int:
        slot = len(self.stems)
        if slot == len(self.parent):
            for name in ("parent", "token", "position", "depth"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        self.stems.append(stem)
        self.parent[slot], self.token[slot], self.position[slot] = parent, token, position
        self.depth[slot] = 1 if parent == ROOT else self.depth[parent] + 1
        return slot

    def ancestors(self, slots: np.ndarray) -> np.ndarray:
        """[q d] the path to each slot, itself included; behind its end the slot itself again."""
        depth = self.depth[slots]
        found = np.repeat(slots[:, None], int(depth.max()), axis=1)
        rows, here = np.arange(len(slots)), slots.copy()
        place = depth - 1
        while True:
            found[rows, place[rows]] = here
            here = self.parent[here]
            inside = here != ROOT
            if not inside.any():
                return found
            rows, here = rows[inside], here[inside]
            place[rows] -= 1

    # -- what the model computed --------------------------------------------------------------------

    def write(
        self, layer: int, slots: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> None:
        """Keep keys and values [kv q d] of one layer."""
        if layer == len(self.keys):
            self.keys.append(key.new_zeros(key.shape[0], len(self.parent), key.shape[2]))
            self.values.append(value.new_zeros(value.shape[0], len(self.parent), value.shape[2]))
        for pools, new in ((self.keys, key), (self.values, value)):
            pools[layer] = roomy(pools[layer], len(self.parent), 1)
            pools[layer].index_copy_(1, slots, new)

    def write_hidden(self, slots: torch.Tensor, hidden: torch.Tensor) -> None:
        """Keep the last hidden states [q d]."""
        if self.hidden is None:
            self.hidden = hidden.new_zeros(len(self.parent), hidden.shape[1])
        self.hidden = roomy(self.hidden, len(self.parent), 0)
        self.hidden.index_copy_(0, slots, hidden)

    @property
    def bytes(self) -> int:
        """What the nodes hold; pools may have up to twice the room."""
        pools = [*self.keys, *self.values]
        per_slot = sum(pool.shape[0] * pool.shape[2] * pool.element_size() for pool in pools)
        if self.hidden is not None:
            per_slot += self.hidden.shape[1] * self.hidden.element_size()
        return per_slot * len(self) + sum(state.nbytes for state in self.sources.values())

    def forget(self, kept: Iterable[int] = ()) -> None:
        """Drop every node that is not on a path to one of `kept`; what is dropped is computed again when asked for."""
        alive: set[int] = set()
        for slot in kept:
            while slot != ROOT and slot not in alive:
                alive.add(slot)
                slot = int(self.parent[slot])
        order = np.array(
            sorted(alive), np.int64
        )  # parents have lower slots than children, before and after
        new = {int(old): place for place, old in enumerate(order)} | {ROOT: ROOT}
        self._slots = {
            (new[parent], stem, token, position): new[slot]
            for (parent, stem, token, position), slot in self._slots.items()
            if slot in alive
        }
        room = max(FIRST, 1 << max(0, int(len(order) - 1).bit_length()))
        index = torch.from_numpy(order)
        for pools in (self.keys, self.values):
            pools[:] = [
                roomy(pool.index_select(1, index.to(pool.device)), room, 1) for pool in pools
            ]
        if self.hidden is not None:
            self.hidden = roomy(self.hidden.index_select(0, index.to(self.hidden.device)), room, 0)
        for name in ("token", "position", "depth"):
            column = np.zeros(room, np.int64)
            column[: len(order)] = getattr(self, name)[order]
            setattr(self, name, column)
        parents = np.zeros(room, np.int64)
        parents[: len(order)] = [new[int(self.parent[old])] for old in order]
        self.parent = parents
        self.stems = [self.stems[old] for old in order]
        used = set(self.stems)
        self.sources = {stem: state for stem, state in self.sources.items() if stem in used}


def roomy(pool: torch.Tensor, room: int, dim: int) -> torch.Tensor:
    """The pool with at least `room` slots along `dim`."""
    if pool.shape[dim] >= room:
        return pool
    shape = list(pool.shape)
    shape[dim] = room - pool.shape[dim]
    return torch.cat([pool, pool.new_zeros(shape)], dim)
