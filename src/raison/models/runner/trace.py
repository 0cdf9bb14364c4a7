"""Traces: one forward pass, watched, and as many backward passes as there are targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import torch

from raison.core.records import Encoding, Target
from raison.models.protocol import Trace
from raison.models.runner.answers import Columns, values_of
from raison.models.runner.batching import Chunk
from raison.models.runner.pass_cache import current_cache
from raison.models.runner.recorded_pass import (
    RecordedPass,
    RecordedRound,
    RowOfChunk,
    TracePlan,
    gradients,
    plan_traces,
    prepare_traces,
    record_pass,
    rounds,
    states_by_stream,
)
from raison.models.runner.runner import Runner

__all__ = ["WANTS", "readout_shares", "record_traces"]

WANTS = frozenset(
    {
        "gradients",
        "attention",
        "attention_gradients",
        "hidden",
        "hidden_gradients",
        "readout",
        "writes",
    }
)


def record_traces(
    runner: Runner,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    want: frozenset[str],
    *,
    embeddings: Sequence[torch.Tensor] | None = None,
    heads: np.ndarray | None = None,
) -> Iterator[tuple[int, Trace]]:
    """Yield (index, trace) for each pair of encoding and target; `want` is a subset of WANTS."""
    if unknown := want - WANTS:
        raise ValueError(f"a trace has no {', '.join(sorted(unknown))}")
    plan = plan_traces(encodings, targets, moved=embeddings is not None)

    cache = current_cache.get()
    if cache is not None and embeddings is None and heads is None:
        passes, pieces = cache.take(plan.pieces, want)
        plan = TracePlan(plan.pairs, pieces)
        while passes:  # not held here any longer than it is needed
            yield from traces_of_pass(runner, passes.pop(0), plan, targets, want)

    for prepared in prepare_traces(runner, plan, want, embeddings=embeddings, heads=heads):
        targets_of_rows = plan.pairs_of(prepared.chunk)
        if max(map(len, targets_of_rows)) == 1:  # else every target has rows of its own
            runner.read_only_target_rows(prepared)
        recorded = record_pass(runner, prepared, want)
        yield from traces_of_pass(runner, recorded, plan, targets, want)


def traces_of_pass(
    runner: Runner,
    recorded: RecordedPass,
    plan: TracePlan,
    targets: Sequence[Target],
    want: frozenset[str],
) -> Iterator[tuple[int, Trace]]:
    """The traces of a pass, round by round."""
    call, hidden = recorded.call, recorded.hidden
    sources: dict[str, list[torch.Tensor]] = {}
    if "gradients" in want:
        sources["leaves"] = call.leaves
    if "attention_gradients" in want:
        sources["maps"] = [seen.weights for seen in call.maps]
    if "hidden_gradients" in want:
        sources["hidden"] = list(chain(*hidden))

    pairs = plan.pairs_of(recorded.chunk)
    last = max(map(len, pairs)) - 1
    for number, each in enumerate(rounds(recorded.chunk, pairs, targets)):
        columns = runner.columns(recorded.output, each.chunk)
        value = values_of(columns, each.chunk.outputs)
        active = each.active(value.device)
        slopes = gradients(
            value[active].sum(), sources, keep_graph=number < last or "readout" in want
        )
        shares = None
        if "readout" in want:
            shares = readout_shares(
                runner, columns, each.chunk, last_states=hidden[-1][-1], active=active
            )
        found = RecordedRound(
            value=value,
            leaves=call.leaves,
            maps=call.maps,
            hidden=hidden,
            leaf_slopes=slopes.get("leaves", []),
            map_slopes=slopes.get("maps", []),
            hidden_slopes=states_by_stream(slopes.get("hidden", []), hidden),
            readout=shares,
            writes=recorded.writes,
        )
        for row, pair in each.rows:
            own = RowOfChunk(each.chunk, row)
            yield pair, own.trace(found, want, written=runner.task.generates)


def readout_shares(
    runner: Runner,
    columns: Columns,
    chunk: Chunk,
    *,
    last_states: torch.Tensor,
    active: torch.Tensor,
) -> torch.Tensor:
    """[b L] shares of the rows from which the answer is read, of the last hidden states [b L d].

    Token targets name their rows. A label does not: its rows are those of the last hidden state on which its
    logit depends, which tells [CLS], mean and last-token pooling apart without a table of models.
    """
    rows = runner.rows_of(chunk)
    if rows is not None:
        shares = last_states.new_full(rows.shape, 1.0 / rows.shape[1])
        nothing = last_states.new_zeros(last_states.shape[:2])
        return nothing.scatter_add(1, rows.to(last_states.device), shares)

    logit = columns.logits.gather(-1, columns.ids[..., None])[active].sum()
    (slope,) = gradients(logit, {"last": [last_states]}, keep_graph=True)["last"]
    size = slope.norm(dim=-1)
    total = size.sum(-1, keepdim=True).clamp_min(torch.finfo(size.dtype).tiny)
    return torch.div(size, total)
