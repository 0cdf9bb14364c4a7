"""How far each row of a block's output moves when the value of one token is zero (Mohebbi et al. 2023).

A block is run again from the input that it had, once for each token, with that token's value vector zero in the
attention and everything else, weights included, as it was. Blocks are found by where they stand: elements of the
outermost module list in which an attention ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from raison.core import progress
from raison.core.records import Encoding, Target
from raison.models.attention.call import Block, Call, running
from raison.models.attention.products import Mark, Products
from raison.models.float64 import precise
from raison.models.protocol import Map, Trace
from raison.models.runner.trace import forward, planned, readout, sliced_readout

if TYPE_CHECKING:
    from raison.models.runner.adapter import Adapter

__all__ = ["zeroed"]


class Silenced(Products):
    """Runs a block with the value of another token zero in every row of the batch."""

    def __init__(self, which: int, tokens: torch.Tensor):
        super().__init__()
        self.which = which  # attention of the block: 0 its own words, 1 the source
        self.tokens = tokens  # [n] column whose value is zero

    def product(self, mark: Mark, weights: torch.Tensor, values: torch.Tensor, multiply: Any) -> torch.Tensor:
        if mark.number == self.which:
            folded = mark.per_head(values).clone()
            folded[torch.arange(len(self.tokens)), :, self.tokens] = 0.0
            values = folded.reshape(values.shape)
        return super().product(mark, weights, values, multiply)


def zeroed(model: Adapter, encodings: Sequence[Encoding], targets: Sequence[Target]) -> Iterator[tuple[int, Trace]]:
    """Yield (index, trace) with `zeroed` maps and the readout; each text runs by itself."""
    for index, (encoding, target) in enumerate(zip(encodings, targets, strict=True)):
        ((chunk, inputs, call, _),) = planned(model, [encoding], [target], frozenset({"attention"}))
        call.record = frozenset({"embeddings", model.map_source, "blocks"})
        model.narrow(chunk, call)
        output = forward(model, {**inputs, "output_hidden_states": True}, call)
        columns = model.columns(output, chunk)
        rows = readout(model, columns, chunk, model.hidden_of(output), torch.ones(1, dtype=torch.bool))
        trace = Trace(encoding, target, 0.0)
        trace.readout = sliced_readout(chunk, 0, rows)
        places = [index[0] for index in chunk.parts[0].index]  # per stream, positions on the axis
        seen = 0
        for block in call.blocks:
            kinds = [each.kind for each in call.maps[seen : seen + block.maps]]
            seen += block.maps
            if kinds:
                trace.zeroed.append(moved(model, block, kinds, call, places, len(trace.zeroed)))
        yield index, trace
        progress.report(index + 1, len(encodings), "texts")


def moved(model: Adapter, block: Block, kinds: list[str], call: Call, places: list[np.ndarray], layer: int) -> Map:
    """[1 s c] cosine distance of each row from where it was, for each token whose value is zero."""
    own = int(kinds[0] == "decoder")
    rows, columns, parts = places[own], [], []
    before = torch.nn.functional.normalize(precise(block.output.detach()), dim=-1)  # [1 s d]
    for which, kind in enumerate(kinds):
        stream = int(kind == "decoder") if kind != "cross" else 0
        size = len(places[stream])
        # an attention of a family's own may fold the batch into other axes, which copies of its input would not fit
        alone = model.bypasses_tap or model.budget.rows is not None
        step = 1 if alone else max(1, model.budget.tokens // len(rows))
        for start in range(0, size, step):
            tokens = torch.arange(start, min(size, start + step), device=block.output.device)
            after = again(block, len(tokens), call, Silenced(which, tokens))
            parts.append(1 - (torch.nn.functional.normalize(precise(after), dim=-1) * before).sum(-1).T)  # [s n]
        columns.append(places[stream])
    matrix = torch.cat(parts, 1).clamp_min(0)
    kind = kinds[0] if len(kinds) == 1 else "cross"
    return Map(kind, layer, rows, np.concatenate(columns), matrix[None])


def again(block: Block, count: int, call: Call, watch: Products) -> torch.Tensor:
    """[n s d] the block's output for `count` copies of its input."""

    def copies(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().expand(count, *value.shape[1:]) if value.dim() > 1 and len(value) == 1 else value
        if isinstance(value, (tuple, list)):
            return type(value)(map(copies, value))
        return value

    rerun = replace(call, record=frozenset(), maps=[], blocks=[], positions=copies(call.positions))
    with torch.inference_mode(), running(rerun), watch:
        found = block.module(*copies(block.args), **{name: copies(value) for name, value in block.kwargs.items()})
    return found if isinstance(found, torch.Tensor) else found[0]
