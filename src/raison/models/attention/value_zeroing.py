"""How far each row of a block's output moves when the value of one token is zero (Mohebbi et al. 2023).

A block is run again from the input that it had, once for each token, with that token's value vector zero in the
attention and everything else, weights included, as it was. Blocks are found by where they stand: elements of the
outermost module list in which an attention ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.nn.functional import normalize

from raison.core import progress
from raison.core.records import Encoding, Target
from raison.models.attention.call import Block, Call
from raison.models.attention.products import Mark, Products
from raison.models.float64 import as_float64
from raison.models.protocol import Map, Trace
from raison.models.runner.recorded_pass import RowOfChunk, plan_traces, prepare_traces
from raison.models.runner.runner import Prepared, Runner, running
from raison.models.runner.trace import readout_shares_in_trace

__all__ = ["value_zeroing_traces"]


class ZeroedValues(Products):
    """Runs a block with the value of another token zero in every row of the batch."""

    def __init__(self, which: int, tokens: torch.Tensor):
        super().__init__()
        self.which = which  # attention of the block: 0 its own words, 1 the source
        self.tokens = tokens  # [n] column whose value is zero

    def factors_of_product(
        self, mark: Mark, weights: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if mark.number == self.which:
            folded = mark.per_head(values).clone()
            folded[torch.arange(len(self.tokens)), :, self.tokens] = 0.0
            values = folded.reshape(values.shape)
        return weights, values


@dataclass(frozen=True)
class BlockPass:
    """A block that ran in a forward pass, with the attention maps that were seen in it."""

    block: Block
    kinds: list[str]  # of its maps
    call: Call
    places: list[np.ndarray]  # per stream, positions on the axis


def value_zeroing_traces(
    runner: Runner, encodings: Sequence[Encoding], targets: Sequence[Target]
) -> Iterator[tuple[int, Trace]]:
    """Yield (index, trace) with `zeroed` maps and the readout; each text runs by itself."""
    for index, (encoding, target) in enumerate(zip(encodings, targets, strict=True)):
        plan = plan_traces([encoding], [target])
        (prepared,) = prepare_traces(runner, plan, frozenset({"attention"}))
        yield index, value_zeroing_trace(runner, prepared, target)
        progress.report(index + 1, len(encodings), "texts")


def value_zeroing_trace(runner: Runner, prepared: Prepared, target: Target) -> Trace:
    """The trace of one text."""
    chunk, call = prepared.chunk, prepared.call
    call.record = frozenset({"embeddings", runner.map_source, "blocks"})
    runner.read_only_target_rows(prepared)
    output = runner.forward(prepared, graph=True, hidden=True)
    columns = runner.columns(output, chunk)
    last_states = runner.task.hidden_states(output)[-1][-1]
    shares = readout_shares_in_trace(
        runner, columns, chunk, last_states=last_states, active=torch.ones(1, dtype=torch.bool)
    )

    row = RowOfChunk(chunk, 0)
    trace = Trace(row.part.encoding, target, 0.0)
    trace.readout = row.readout(shares)
    seen = 0
    for block in call.blocks:
        kinds = [each.kind for each in call.maps[seen : seen + block.maps]]
        seen += block.maps
        if kinds:
            ran = BlockPass(block, kinds, call, row.places)
            trace.zeroed.append(map_of_block(runner, ran, layer=len(trace.zeroed)))
    return trace


def map_of_block(runner: Runner, ran: BlockPass, *, layer: int) -> Map:
    """[1 s c] cosine distance of each row from where it was, for each token whose value is zero."""
    rows = ran.places[int(ran.kinds[0] == "decoder")]
    before = normalize(as_float64(ran.block.output.detach()), dim=-1)  # [1 s d]
    # an attention of a family's own may fold the batch into other axes, which copies of its input would not fit
    alone = runner.bypasses_tap or runner.budget.rows is not None
    step = 1 if alone else max(1, runner.budget.tokens // len(rows))

    columns = []
    parts = []
    for which, kind in enumerate(ran.kinds):
        source = ran.places[int(kind == "decoder")]
        columns.append(source)
        for start in range(0, len(source), step):
            tokens = torch.arange(
                start, min(len(source), start + step), device=ran.block.output.device
            )
            after = normalize(as_float64(run_block_again(ran, ZeroedValues(which, tokens))), dim=-1)
            parts.append(1 - (after * before).sum(-1).T)  # [s n]
    return Map(
        kind=ran.kinds[0] if len(ran.kinds) == 1 else "cross",
        layer=layer,
        rows=rows,
        cols=np.concatenate(columns),
        weights=torch.cat(parts, 1).clamp_min(0)[None],
    )


def run_block_again(ran: BlockPass, watch: ZeroedValues) -> torch.Tensor:
    """[n s d] the block's output for a copy of its input for each token whose value is zero."""
    count = len(watch.tokens)
    block = ran.block
    args = [copies_of_value(value, count) for value in block.args]
    kwargs = {name: copies_of_value(value, count) for name, value in block.kwargs.items()}
    positions = ran.call.positions
    if positions is not None:
        positions = [copies_of_row(tensor, count) for tensor in positions]
    call = replace(
        ran.call,
        record=frozenset(),
        maps=[],
        blocks=[],
        positions=positions,
    )
    with torch.inference_mode(), running(call), watch:
        output = block.module(*args, **kwargs)
    first: torch.Tensor = output if isinstance(output, torch.Tensor) else output[0]
    return first


def copies_of_value(value: object, count: int) -> object:
    """The same with `count` rows in all tensors of one row, however deep they lie."""
    if isinstance(value, torch.Tensor):
        return copies_of_row(value, count)
    if isinstance(value, (tuple, list)):
        return type(value)(copies_of_value(each, count) for each in value)
    return value


def copies_of_row(tensor: torch.Tensor, count: int) -> torch.Tensor:
    """A tensor of one row with `count` of them; another one as it is."""
    if tensor.dim() < 2 or len(tensor) != 1:
        return tensor
    return tensor.detach().expand(count, *tensor.shape[1:])
