"""One forward pass under rules, and the relevance that its backward passes bring: of each row the trace, attention
maps and totals.

Relevance rules are not linear (additions are rescaled), so each token of a target starts a pass of its own, with
relevance 1 at its logit, and the mean of the passes is told; a contrast is the difference of two passes. Gradient
rules are linear: one pass from the logits, times the tensor that the gradient belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import torch

from raison.core.records import Encoding, Target
from raison.models.attention.call import Call
from raison.models.protocol import Map, Trace
from raison.models.relevance.mode import Relevance, Rules
from raison.models.runner.answers import Columns, values_of
from raison.models.runner.batching import Chunk
from raison.models.runner.recorded_pass import (
    RowOfChunk,
    embeddings_in_layout,
    gradients,
    plan_traces,
    prepare_traces,
    rounds_of_gradients,
    states_by_stream,
    streams_of_map,
)
from raison.models.runner.runner import Prepared, Runner

__all__ = ["RELATES", "relevance_traces", "rescale_traces"]

RELATES = frozenset({"relevance", "attention", "cuts"})
EVERYTHING_KEPT = frozenset({"attention_gradients"})  # what a row of such a pass costs


@dataclass
class RelevanceOfPass:
    """What a backward pass brought to the tensors of its forward pass, as relevance."""

    leaves: list[torch.Tensor]  # per stream [b t d]
    maps: list[torch.Tensor] = field(default_factory=list)  # [b h s t]
    hidden: list[list[torch.Tensor]] = field(default_factory=list)  # per stream, per layer [b t d]
    # keys and values of each cross-attention, in turn
    crossing: list[torch.Tensor] = field(default_factory=list)


# -- relevance of one text -----------------------------------------------------------------------------------


def relevance_traces(
    runner: Runner,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    want: frozenset[str],
    rules: Rules,
    *,
    embeddings: Sequence[torch.Tensor] | None = None,
    heads: np.ndarray | None = None,
) -> Iterator[tuple[int, Trace]]:
    """Yield (index, trace) with relevance of tokens, and of attention weights and between blocks where wanted."""
    unknown = want - RELATES
    if unknown:
        names = ", ".join(sorted(unknown))
        raise ValueError(f"a trace under rules has no {names}")

    moved = embeddings is not None
    plan = plan_traces(encodings, targets, moved=moved)
    passes = prepare_traces(runner, plan, EVERYTHING_KEPT, embeddings=embeddings, heads=heads)
    for prepared in passes:
        pairs = plan.pairs_of(prepared.chunk)
        most_targets = max(map(len, pairs))
        if most_targets == 1:
            runner.read_only_target_rows(prepared)
        yield from traces_under_rules(runner, prepared, pairs, targets, want, rules)


def traces_under_rules(
    runner: Runner,
    prepared: Prepared,
    pairs: list[list[int]],
    targets: Sequence[Target],
    want: frozenset[str],
    rules: Rules,
) -> Iterator[tuple[int, Trace]]:
    """The traces of one forward pass."""
    call = prepared.call
    call.record = frozenset({"embeddings", "attention", "crossing"})
    rows = len(prepared.chunk.outputs)
    mode = Relevance(rules, rows=rows)
    wants_cuts = "cuts" in want
    output = runner.forward(prepared, graph=True, hidden=wants_cuts, watch=mode)

    sources = {"leaves": call.leaves}
    if "attention" in want:
        sources["maps"] = [mode.maps[number] for number in sorted(mode.maps)]
    hidden: list[list[torch.Tensor]] = []
    if wants_cuts:
        hidden = runner.task.hidden_states(output)
        sources["hidden"] = list(chain(*hidden))
        sources["crossing"] = list(chain(*call.crossing))

    for each in rounds_of_gradients(prepared.chunk, pairs, targets):
        columns = runner.columns(output, each.chunk)
        mode.constants.zero_()
        active = each.active(columns.logits.device)
        relevance = relevance_of_sources(columns, active, sources, rules)
        relevance_of_states = relevance.get("hidden", [])
        found = RelevanceOfPass(
            leaves=relevance["leaves"],
            maps=relevance.get("maps", []),
            hidden=states_by_stream(relevance_of_states, hidden),
            crossing=relevance.get("crossing", []),
        )

        as_logits = ["logit"] * len(columns.ids)
        logits = values_of(columns, as_logits).detach()
        values = values_of(columns, each.chunk.outputs).detach()
        strange = tuple(sorted(mode.strange))
        for row, pair in each.rows:
            own = RowOfChunk(each.chunk, row)
            trace = trace_of_row(own, targets[pair], call, found)
            trace.value = float(values[row].sum())
            trace.strange = strange
            trace.logit = float(logits[row].sum())
            trace.constants = float(mode.constants[row])
            yield pair, trace


def relevance_of_sources(
    columns: Columns, active: torch.Tensor, sources: dict[str, list[torch.Tensor]], rules: Rules
) -> dict[str, list[torch.Tensor]]:
    """The relevance that backward passes from the active rows bring to the sources."""
    logits = logits_for_relevance(columns, columns.ids)
    mine = logits[active]  # [b m]
    rival = None
    if columns.contrast is not None:
        logits_of_rival = logits_for_relevance(columns, columns.contrast)
        rival = logits_of_rival[active]

    total: dict[str, list[torch.Tensor]] = {}
    if rules.gradients:
        start = mine
        if rival is not None:
            start = mine - rival
        slopes = gradients(start.sum(), sources, keep_graph=True)
        for name, tensors in sources.items():
            total[name] = relevance_by_slopes_and_inputs(slopes[name], tensors)
        return total

    add_passes(total, mine, sources, sign=1.0)
    if rival is not None:
        add_passes(total, rival, sources, sign=-1.0)
    return total


def logits_for_relevance(columns: Columns, ids: torch.Tensor) -> torch.Tensor:
    """[b m] the logit of one outcome in each column."""
    places = ids[..., None]
    logits = columns.logits.gather(-1, places)
    return logits[..., 0]


def relevance_by_slopes_and_inputs(
    slopes: list[torch.Tensor], tensors: list[torch.Tensor]
) -> list[torch.Tensor]:
    """Relevance of tensors under rules that pass gradients on."""
    relevance = []
    for slope, tensor in zip(slopes, tensors, strict=True):
        product = slope * tensor.detach()
        relevance.append(product)
    return relevance


def add_passes(
    total: dict[str, list[torch.Tensor]],
    logits: torch.Tensor,
    sources: dict[str, list[torch.Tensor]],
    *,
    sign: float,
) -> None:
    """Add to a total what a backward pass from each column of logits [b m] brings to the sources, as a mean."""
    _, width = logits.shape
    weight = sign / width
    for column in range(width):
        start = logits[:, column].sum()
        found = gradients(start, sources, keep_graph=True)
        for name, tensors in found.items():
            before = total.get(name) or list(map(torch.zeros_like, tensors))
            after = []
            for old, new in zip(before, tensors, strict=True):
                after.append(old + weight * new)
            total[name] = after


def trace_of_row(row: RowOfChunk, target: Target, call: Call, found: RelevanceOfPass) -> Trace:
    """The trace of one row, on the axis of its encoding."""
    encoding = row.part.encoding
    trace = Trace(encoding, target, 0.0)
    dtype = found.leaves[0].dtype
    relevance = torch.zeros(encoding.ids.shape, dtype=dtype)
    for stream, tensor in enumerate(found.leaves):
        places = torch.from_numpy(row.places[stream])
        own = tensor[row.row, row.spans[stream]]
        relevance[places] = own.sum(-1).cpu()
    trace.relevance = relevance
    trace.maps = maps_of_row(row, call, found.maps)
    if found.hidden:
        trace.cuts = cuts_of_row(row.row, found)
    return trace


def maps_of_row(row: RowOfChunk, call: Call, maps: list[torch.Tensor]) -> list[Map]:
    """The relevance of the attention weights of one row."""
    result = []
    layers: dict[str, int] = {}  # so far, by kind
    for number, tensor in enumerate(maps):
        kind = "self"  # a family that bypasses the tap has recorded no maps, and has one kind only
        if call.maps:
            kind = call.maps[number].kind
        layer = layers.get(kind, 0)
        layers[kind] = layer + 1

        row_stream, column_stream = streams_of_map(kind)
        row_span = row.spans[row_stream]
        column_span = row.spans[column_stream]
        own = Map(
            kind=kind,
            layer=layer,
            rows=row.places[row_stream],
            cols=row.places[column_stream],
            weights=torch.empty(0),
            relevance=tensor[row.row, :, row_span, column_span],
        )
        result.append(own)
    return result


def cuts_of_row(row: int, found: RelevanceOfPass) -> list[float]:
    """Total relevance at each border between blocks, from the last to the first.

    In an encoder-decoder a border of the decoder is crossed also by what went over to the encoder behind it, and a
    border of the encoder leaves out what stayed with the decoder's own words.
    """
    own = totals_of_row(found.hidden[-1], row)
    if len(found.hidden) == 1:
        return own[::-1]

    crossed = totals_of_row(found.crossing, row)
    over = []  # per layer
    for keys, values in zip(crossed[::2], crossed[1::2], strict=True):
        over.append(keys + values)

    behind = [sum(over[layer:]) for layer in range(len(over) + 1)]
    decoder = []
    for stayed, went in zip(own, behind, strict=True):
        decoder.append(stayed + went)

    source = totals_of_row(found.hidden[0], row)
    encoder = [own[0] + each for each in source]
    return decoder[::-1] + encoder[::-1]


def totals_of_row(tensors: Sequence[torch.Tensor], row: int) -> list[float]:
    """The total of each tensor in one row of the batch."""
    totals = []
    for tensor in tensors:
        total = tensor[row].sum()
        totals.append(float(total))
    return totals


# -- from a reference to a text ------------------------------------------------------------------------------


def rescale_traces(
    runner: Runner,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    rules: Rules,
    *,
    pairs: Sequence[torch.Tensor],
) -> Iterator[tuple[int, Trace]]:
    """Yield (index, trace) with the contribution of each token to the change from a reference to the input.

    `pairs` are word embeddings [2 t d]: the input's and the reference's. The value is read under the rules too, so
    that contributions add up to its change whatever it is; that change is told as the only cut.
    """
    texts = [pair[0] for pair in pairs]
    plan = plan_traces(encodings, targets, moved=True)
    for prepared in prepare_traces(runner, plan, EVERYTHING_KEPT, embeddings=texts):
        prepared.call.record = frozenset({"embeddings"})
        runner.read_only_target_rows(prepared)
        chunk = prepared.chunk
        numbers = [served[0] for served in plan.pairs_of(chunk)]
        given = [pairs[number][1] for number in numbers]
        references = embeddings_in_layout(chunk, given)
        both = relevance_pass_with_references(prepared, references)
        call = both.call
        mode = Relevance(rules)
        output = runner.forward(both, graph=True, watch=mode)
        with torch.enable_grad(), mode:
            columns = runner.columns(output, both.chunk)
            by_token = values_of(columns, both.chunk.outputs)
            values = by_token.sum(-1)  # [2b]

        count = len(numbers)
        of_inputs = values[:count]
        sources = {"leaves": call.leaves}
        slopes = gradients(of_inputs.sum(), sources, keep_graph=False)
        shares = []
        for leaf, slope in zip(call.leaves, slopes["leaves"], strict=True):
            inputs = leaf.detach()[:count]
            baselines = leaf.detach()[count:]
            multipliers = slope[:count]
            shares.append(multipliers * (inputs - baselines))

        found = RelevanceOfPass(shares)
        strange = tuple(sorted(mode.strange))
        for row, number in enumerate(numbers):
            own = RowOfChunk(chunk, row)
            trace = trace_of_row(own, targets[number], call, found)
            change = values[row] - values[count + row]
            trace.value = float(values[row].detach())
            trace.cuts = [float(change.detach())]
            trace.strange = strange
            yield number, trace


def relevance_pass_with_references(prepared: Prepared, references: list[torch.Tensor]) -> Prepared:
    """A pass of all texts, and behind them of the same texts with other embeddings, per stream [b L d]."""
    chunk = prepared.chunk
    call = prepared.call
    inputs = dict(prepared.inputs)
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor):
            inputs[name] = batch_doubled_for_pass(value)
    embeddings: list[torch.Tensor | None] = []
    for own, reference in zip(call.replace or [], references, strict=True):
        if own is not None:
            embeddings.append(torch.cat([own, reference]))
    call.replace = embeddings
    if call.positions is not None:
        call.positions = [batch_doubled_for_pass(positions) for positions in call.positions]
    if call.rows is not None:
        call.rows = batch_doubled_for_pass(call.rows)
    parts = chunk.parts * 2
    doubled = Chunk(parts, chunk.lengths, chunk.side, picked=chunk.picked)
    return Prepared(doubled, inputs, call)


def batch_doubled_for_pass(tensor: torch.Tensor) -> torch.Tensor:
    """All rows, and behind them the same rows again."""
    return torch.cat([tensor, tensor])
