"""New nodes of a trie as one packed sequence: every token gathers the keys and values of its own ancestors.

The family's own eager attention does the arithmetic, each query with its ancestors as a batch row of its own, so soft
caps, sinks and biases need no code here; the family's own mask rule is asked about original positions, so windows need
none either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from raison.models.prefix.trie import Trie

__all__ = ["Packed", "chains_of"]

FLOATS = 2**22  # keys gathered at a time: stays in the cache of most machines
CHAIN = 8  # nodes in a row from which asking them at once pays (4 to 12 cost the same, 32 a quarter more)


@dataclass
class Packed:
    """One packed call, as the tap sees it."""

    trie: Trie
    slots: torch.Tensor  # [q]
    ancestors: torch.Tensor  # [q d]
    depth: torch.Tensor  # [q]
    positions: torch.Tensor  # [q]
    seen: torch.Tensor  # [q d] positions of the ancestors
    chains: list[
        slice
    ]  # runs of nodes that are each other's parents, long enough to be asked at once
    source: torch.Tensor | None = (
        None  # [q l] where each query's source stands among the packed encoder states
    )
    there: torch.Tensor | None = None  # [q l] False behind the end of a source
    layer: int = 0  # self-attention calls so far
    plans: dict[bool, list[tuple[slice, bool, int]]] = field(
        default_factory=dict
    )  # by cross or self: what runs together

    def mask(self, rule: Callable[..., torch.Tensor] | None, dtype: torch.dtype) -> torch.Tensor:
        """[1 1 q d] additive: the family's rule about original positions, and nothing behind the path."""
        zero = torch.zeros(1, 1, 1, 1, dtype=torch.long, device=self.seen.device)
        allowed = torch.arange(self.seen.shape[1], device=self.seen.device) < self.depth[:, None]
        if rule is not None:
            allowed = allowed & rule(
                zero, zero, self.positions[None, None, :, None], self.seen[None, None]
            )
        lowest = torch.finfo(dtype).min
        return (
            torch.zeros((), dtype=dtype, device=self.seen.device)
            .where(allowed, lowest)
            .reshape(1, 1, *allowed.shape[-2:])
        )

    def attend(
        self,
        eager: Any,
        module: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, None]:
        """[1 q h d] attention of every query over its own ancestors (or its own source)."""
        bias = kwargs.pop("position_bias", None)
        cross = getattr(module, "raison_kind", "self") == "cross"
        if cross:
            assert self.source is not None and self.there is not None
            keys, values, index, lengths, bias = (
                key[0],
                value[0],
                self.source,
                self.there.sum(1),
                None,
            )
            absent = query.new_full((), torch.finfo(query.dtype).min)
            mask = query.new_zeros(()).where(self.there, absent)[None, None]
        else:
            self.trie.write(self.layer, self.slots, key[0], value[0])
            keys, values = self.trie.keys[self.layer], self.trie.values[self.layer]
            index, lengths = self.ancestors, self.depth
            self.layer += 1
        if cross not in self.plans:
            self.plans[cross] = list(
                blocks(lengths.cpu().numpy(), self.chains, keys.shape[0] * keys.shape[2])
            )
        result = query.new_zeros(
            query.shape[2], query.shape[1], values.shape[-1]
        )  # nothing seen, nothing taken
        for rows, chain, width in self.plans[cross]:
            # a chain asks about the path to its end, all queries at once; others each about a path of their own
            part = slice(rows.stop - 1, rows.stop) if chain else rows
            flat = index[part, :width].reshape(-1)
            shape = (keys.shape[0], part.stop - part.start, width, -1)
            gathered = [
                pool.index_select(1, flat).view(shape).transpose(0, 1) for pool in (keys, values)
            ]
            asked, shown = query[0, :, rows], mask[0, 0, rows, :width]  # type: ignore[index]
            asked, shown = (
                (asked[None], shown[None, None])
                if chain
                else (row_by_row(asked), shown[:, None, None])
            )
            extra = {}
            if bias is not None:
                near = bias[0, :, rows, :width]
                extra = {"position_bias": near[None] if chain else row_by_row(near)}
            found, _ = eager(module, asked, *gathered, shown, **extra, **kwargs)
            result[rows] = found[0] if chain else found[:, 0]
        if cross:
            result[lengths == 0] = 0.0
        return result[None], None


def blocks(
    lengths: np.ndarray, chains: list[slice], width: int
) -> Iterator[tuple[slice, bool, int]]:
    """Queries that run together, whether they are a chain, and how far back the longest of them looks.

    Long chains, in which each node is the next one's parent, run at once; the rest in blocks whose keys fit the cache.
    """
    start = 0
    for chain in [*chains, slice(len(lengths), len(lengths))]:
        while start < chain.start:
            longest = np.maximum.accumulate(np.maximum(lengths[start : chain.start], 1))
            fits = longest * np.arange(1, len(longest) + 1) * width <= FLOATS
            stop = start + max(1, int(fits.sum()))
            if lengths[start:stop].any():
                yield slice(start, stop), False, int(lengths[start:stop].max())
            start = stop
        if chain.stop > chain.start and lengths[chain].any():
            yield chain, True, int(lengths[chain].max())
        start = chain.stop


def row_by_row(tensor: torch.Tensor) -> torch.Tensor:
    """[h q d] as [q h 1 d]: every query is a row of the batch."""
    return tensor.transpose(0, 1)[:, :, None]


def chains_of(parent: np.ndarray, slots: np.ndarray) -> list[slice]:
    """Where long runs of nodes stand, each the parent of the next (and so all on the same source)."""
    ends = np.flatnonzero(parent[slots[1:]] != slots[:-1]) + 1
    borders = [0, *ends.tolist(), len(slots)]
    return [slice(a, b) for a, b in pairwise(borders) if b - a >= CHAIN]
