"""Traces: one forward pass, watched, and as many backward passes as there are targets.

A pair is a text with one target, known by its number. Pairs of the same text share a row of the forward pass. Round k
goes backward from the k-th target of every row that has one; these rows are active.
"""

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
    rounds_of_gradients,
    states_by_stream,
)
from raison.models.runner.runner import Runner

__all__ = ["WANTS", "readout_shares_in_trace", "record_traces"]

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
    # texts with embeddings of their own run one by one, even where they are equal
    plan = plan_traces(encodings, targets, moved=embeddings is not None)

    cache = current_cache.get()
    if cache is not None and embeddings is None and heads is None:
        # passes that were made for the prediction already, and the texts that are still to run
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
    for number, this_round in enumerate(rounds_of_gradients(recorded.chunk, pairs, targets)):
        chunk = this_round.chunk
        columns = runner.columns(recorded.output, chunk)
        value = values_of(columns, chunk.outputs)
        active = this_round.active(value.device)
        graph_is_needed_again = number < last or "readout" in want
        slopes = gradients(value[active].sum(), sources, keep_graph=graph_is_needed_again)
        shares = None
        if "readout" in want:
            last_states = hidden[-1][-1]  # of the last stream, behind its last layer
            shares = readout_shares_in_trace(
                runner, columns, chunk, last_states=last_states, active=active
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
        for row, pair in this_round.rows:
            row_of_chunk = RowOfChunk(chunk, row)
            yield pair, row_of_chunk.trace(found, want, written=runner.task.generates)


def readout_shares_in_trace(
    runner: Runner,
    columns: Columns,
    chunk: Chunk,
    *,
    last_states: torch.Tensor,
    active: torch.Tensor,
) -> torch.Tensor:
    """[b t] shares of the rows from which the answer is read, of the last hidden states [b t d].

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
