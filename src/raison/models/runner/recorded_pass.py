"""One recorded forward pass of several texts: its embeddings and states, the gradients that go back through it, the
trace of each row.

Texts of equal length run together; targets that share a text share its forward pass. A trace is about one example and
one target, on the axis of its encoding, so what a pass recorded is cut apart again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np
import torch

from raison.core.errors import Unsupported
from raison.core.records import Encoding, Target
from raison.models.attention.call import Call, Seen
from raison.models.attention.residual_writes import Writes
from raison.models.protocol import Map, Trace
from raison.models.runner import meter
from raison.models.runner.batching import Chunk, Piece, pieces_of_whole_texts
from raison.models.runner.output_format import Output
from raison.models.runner.runner import Prepared, Runner

__all__ = [
    "RecordedPass",
    "RecordedRound",
    "Round",
    "RowOfChunk",
    "TracePlan",
    "embeddings_in_layout",
    "gradients",
    "plan_traces",
    "prepare_traces",
    "record_pass",
    "rounds_of_gradients",
    "states_by_stream",
    "streams_of_map",
]  # fmt: skip

READS_ATTENTION = frozenset({"attention", "attention_gradients", "writes"})
READS_HIDDEN = frozenset({"hidden", "hidden_gradients", "readout"})
NEEDS_GRAPH = frozenset({"gradients", "attention_gradients", "hidden_gradients", "readout"})


# -- which texts run, for which pairs of text and target -----------------------------------------------------


@dataclass(frozen=True)
class TracePlan:
    """The texts that run, and which pairs of a text and a target each of them serves."""

    pairs: list[list[int]]  # by owner of a piece: numbers of the pairs
    pieces: list[Piece]

    def pairs_of(self, chunk: Chunk) -> list[list[int]]:
        """The numbers of the pairs that each row of a chunk serves."""
        return [self.pairs[part.owner] for part in chunk.parts]


def plan_traces(
    encodings: Sequence[Encoding], targets: Sequence[Target], *, moved: bool = False
) -> TracePlan:
    """One row for each text; one for each pair where embeddings are `moved`, so that even equal texts differ."""
    members: dict[int, list[int]] = {}
    for number, encoding in enumerate(encodings):
        text = id(encoding)
        if moved:
            text = number
        members.setdefault(text, []).append(number)
    pairs = list(members.values())

    texts: list[Encoding] = []
    widest: list[Target] = []
    for numbers in pairs:
        first = numbers[0]
        texts.append(encodings[first])
        asked = [targets[number] for number in numbers]
        widest.append(max(asked, key=last_position_in_pass))
    pieces = pieces_of_whole_texts(texts, widest)
    return TracePlan(pairs, pieces)


def last_position_in_pass(target: Target) -> int:
    """Where a target ends: the one that sees most decides how much of the text runs."""
    return max(target.positions, default=0)


def prepare_traces(
    runner: Runner,
    plan: TracePlan,
    want: frozenset[str],
    *,
    embeddings: Sequence[torch.Tensor] | None = None,
    heads: np.ndarray | None = None,
) -> Iterator[Prepared]:
    """Forward passes that cover all texts of a plan."""
    row_bytes = runner.cost_of_traced_row(want)
    for prepared in runner.prepare(plan.pieces, row_bytes=row_bytes, heads=heads):
        if embeddings is not None:
            chunk = prepared.chunk
            given = [embeddings[numbers[0]] for numbers in plan.pairs_of(chunk)]
            in_layout = embeddings_in_layout(chunk, given)
            prepared.call.replace = list(in_layout)
        yield prepared


def embeddings_in_layout(chunk: Chunk, embeddings: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Per stream [b L d]: given word embeddings [t d] in the layout of a chunk."""
    streams = []
    for stream, length in enumerate(chunk.lengths):
        rows = []
        for part, given in zip(chunk.parts, embeddings, strict=True):
            places = part.index[stream][0]
            own = given[places]
            span = chunk.span(part, stream)
            before = span.start
            behind = length - span.stop
            row = torch.nn.functional.pad(own, (0, 0, before, behind))
            rows.append(row)
        streams.append(torch.stack(rows))
    return streams


# -- the pass ------------------------------------------------------------------------------------------------


@dataclass
class RecordedPass:
    """A forward pass with its graph, and what was seen in it."""

    chunk: Chunk
    call: Call
    output: Output
    hidden: list[list[torch.Tensor]] = field(default_factory=list)  # per stream, per layer [b t d]
    writes: Writes | None = None


def record_pass(runner: Runner, prepared: Prepared, want: frozenset[str]) -> RecordedPass:
    """Run a chunk and see what is wanted of it."""
    chunk = prepared.chunk
    call = prepared.call
    record = {"embeddings"}
    if want & READS_ATTENTION:
        record.add(runner.map_source)
    call.record = frozenset(record)
    writes = None
    if "writes" in want:
        writes = Writes()

    needs_graph = bool(want & NEEDS_GRAPH)
    reads_hidden = bool(want & READS_HIDDEN)
    output = runner.forward(prepared, graph=needs_graph, hidden=reads_hidden, watch=writes)
    check_embeddings(chunk, call)
    if writes is not None and not writes.complete:
        raise Unsupported(
            f"What each token's attention adds to the states of {runner.loaded.name} can't be followed: choose a "
            "method that needs attention weights or gradients only, such as gae."
        )
    found = RecordedPass(chunk, call, output, writes=writes)
    if reads_hidden:
        found.hidden = runner.task.hidden_states(output)
    return found


def check_embeddings(chunk: Chunk, call: Call) -> None:
    """Raise where the recorded word embeddings are not those of the texts; the probe then offers no traces."""
    tables = len(call.leaves)
    streams = len(chunk.lengths)
    if tables != streams:
        raise RuntimeError(f"{tables} word tables for {streams} streams of tokens")

    texts = len(chunk.parts)
    for leaf, length in zip(call.leaves, chunk.lengths, strict=True):
        shape = tuple(leaf.shape)
        # some embed [t b], and rows would be taken for texts
        if shape[:2] != (texts, length):
            raise RuntimeError(f"word embeddings of the shape {shape}, not [texts tokens width]")


# -- going back ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Round:
    """One target for every row of a pass."""

    # [b] the pair that a row serves in this round; None where it has no more
    pairs: list[int | None]
    chunk: Chunk  # the same rows with the targets of the round

    @property
    def rows(self) -> list[tuple[int, int]]:
        """Each row that serves a pair, and the number of the pair."""
        serving = []
        for row, pair in enumerate(self.pairs):
            if pair is not None:
                serving.append((row, pair))
        return serving

    def active(self, device: torch.device) -> torch.Tensor:
        """[b] True for rows that serve a pair."""
        serves = [pair is not None for pair in self.pairs]
        return torch.tensor(serves, device=device)


def rounds_of_gradients(
    chunk: Chunk, pairs: list[list[int]], targets: Sequence[Target]
) -> Iterator[Round]:
    """Round k asks for every row's k-th target."""
    most_targets = max(map(len, pairs))
    for number in range(most_targets):
        served: list[int | None] = []
        parts = []
        for part, row in zip(chunk.parts, pairs, strict=True):
            if number < len(row):
                asked = row[number]
                served.append(asked)
            else:
                asked = row[0]  # a row without a target in this round: its answer is not used
                served.append(None)
            asking = replace(part, target=targets[asked])
            parts.append(asking)
        chunk_of_round = replace(chunk, parts=parts)
        yield Round(served, chunk_of_round)


def gradients(
    total: torch.Tensor, sources: dict[str, list[torch.Tensor]], *, keep_graph: bool
) -> dict[str, list[torch.Tensor]]:
    """By autograd.grad, never .backward: the user's .grad is not ours. What was not used gets zeros."""
    tensors = list(chain(*sources.values()))
    if not tensors:
        return {}
    # rules may have made constants of some
    asked = [tensor for tensor in tensors if tensor.requires_grad]
    if asked:
        meter.count_passes(backwards=len(asked[0]))
    slopes = torch.autograd.grad(total, asked, retain_graph=keep_graph, allow_unused=True)

    slope_of = dict(zip(map(id, asked), slopes, strict=True))
    found: dict[str, list[torch.Tensor]] = {}
    for name, group in sources.items():
        found[name] = []
        for tensor in group:
            slope = slope_of.get(id(tensor))
            if slope is None:
                slope = torch.zeros_like(tensor)
            found[name].append(slope)
    return found


def states_by_stream(
    tensors: list[torch.Tensor], hidden: list[list[torch.Tensor]]
) -> list[list[torch.Tensor]]:
    """A flat list of what belongs to hidden states, in their own order: per stream, per layer."""
    if not tensors:
        return []
    streams = []
    start = 0
    for stream in hidden:
        end = start + len(stream)
        streams.append(tensors[start:end])
        start = end
    return streams


# -- the trace of one row -----------------------------------------------------------------------------------


def streams_of_map(kind: str) -> tuple[int, int]:
    """The streams of an attention map's rows and columns: cross-attention goes from the prefix to the source."""
    if kind == "decoder":
        return 1, 1
    if kind == "cross":
        return 1, 0
    return 0, 0


@dataclass
class RecordedRound:
    """What a batch brought: tensors in its own layout, with gradients of the round's targets."""

    value: torch.Tensor  # [b m]
    leaves: list[torch.Tensor]  # per stream [b t d] word embeddings
    maps: list[Seen]
    hidden: list[list[torch.Tensor]]  # per stream, per layer [b t d]
    leaf_slopes: list[torch.Tensor] = field(default_factory=list)
    map_slopes: list[torch.Tensor] = field(default_factory=list)
    hidden_slopes: list[list[torch.Tensor]] = field(default_factory=list)  # per stream, per layer
    readout: torch.Tensor | None = None  # [b t]
    writes: Writes | None = None


@dataclass(frozen=True)
class RowOfChunk:
    """One row of a batch, and where its tokens stand in the batch and on the axis of its encoding."""

    chunk: Chunk
    row: int

    @property
    def part(self) -> Piece:
        return self.chunk.parts[self.row]

    @cached_property
    def spans(self) -> list[slice]:
        """Per stream the columns of the batch in which its tokens stand."""
        streams = range(len(self.chunk.lengths))
        return [self.chunk.span(self.part, stream) for stream in streams]

    @cached_property
    def places(self) -> list[np.ndarray]:
        """Per stream the positions of its tokens on the axis."""
        return [index[0] for index in self.part.index]

    def on_axis(self, streams: Sequence[torch.Tensor]) -> torch.Tensor:
        """[t d] of per stream [b L d]."""
        first = streams[0]
        device = first.device
        *_, width = first.shape
        size = len(self.part.encoding)
        result = torch.zeros(size, width, dtype=first.dtype, device=device)
        for stream, tensor in enumerate(streams):
            places = torch.from_numpy(self.places[stream]).to(device)
            own = tensor[self.row, self.spans[stream]]
            result[places] = own.detach().to(device)
        return result

    def layers_on_axis(self, streams: Sequence[Sequence[torch.Tensor]]) -> list[torch.Tensor]:
        """Per layer [t d] of per stream, per layer [b L d].

        Source and prefix have blocks of their own; where their numbers differ the shorter stack stays at its end.
        """
        layers = []
        most_layers = max(map(len, streams), default=0)
        for number in range(most_layers):
            states = []
            for stream in streams:
                last = len(stream) - 1
                states.append(stream[min(number, last)])
            layers.append(self.on_axis(states))
        return layers

    def readout(self, shares: torch.Tensor) -> np.ndarray:
        """[t] of [b L]: the readout of this row (it is the last stream that answers)."""
        own = shares[self.row, self.spans[-1]].detach()
        numbers = own.cpu().double().numpy()
        result = np.zeros(len(self.part.encoding))
        places = self.places[-1]
        result[places] = numbers
        return result

    def trace(self, found: RecordedRound, want: frozenset[str], *, written: bool) -> Trace:
        """What was recorded of this row; a target that is `written` token by token has maps of what stands before it,
        however far the row goes on for other targets."""
        encoding = self.part.encoding
        target = self.part.required_target
        values = found.value[self.row].detach()
        trace = Trace(
            encoding=encoding,
            target=target,
            value=float(values.sum()),
            embeddings=self.on_axis(found.leaves),
        )
        if "gradients" in want:
            trace.gradient = self.on_axis(found.leaf_slopes)
        if want & {"hidden", "hidden_gradients"}:
            trace.hidden = self.layers_on_axis(found.hidden)
            trace.hidden_gradient = self.layers_on_axis(found.hidden_slopes)
        if want & {"attention", "attention_gradients", "writes"}:
            end = len(encoding)
            if written:
                end = max(target.positions)
            trace.maps = self.maps(found, end)
        if found.writes is not None:
            self.cut_writes(trace, found.writes)
        if found.readout is not None:
            trace.readout = self.readout(found.readout)
        return trace

    def maps(self, found: RecordedRound, end: int) -> list[Map]:
        """The attention maps of this row among the tokens before `end`."""
        result: list[Map] = []
        layers: dict[str, int] = {}  # so far, by kind
        for number, seen in enumerate(found.maps):
            kind = seen.kind
            layer = layers.get(kind, 0)
            layers[kind] = layer + 1

            row_stream, column_stream = streams_of_map(kind)
            rows, row_span = self.before(end, row_stream)
            columns, column_span = self.before(end, column_stream)
            weights = seen.weights[self.row, :, row_span, column_span]
            own = Map(
                kind=kind,
                layer=layer,
                rows=rows,
                cols=columns,
                weights=weights.detach(),
                block=seen.block,
            )
            if found.map_slopes:
                slopes = found.map_slopes[number]
                own.gradient = slopes[self.row, :, row_span, column_span]
            result.append(own)
        return result

    def before(self, end: int, stream: int) -> tuple[np.ndarray, slice]:
        """The tokens of a stream that stand before a position: their positions, and their columns in the batch."""
        places = self.places[stream]
        stands_before = places < end
        count = int(stands_before.sum())  # places rise
        start = self.spans[stream].start
        columns = slice(start, start + count)
        return places[:count], columns

    def cut_writes(self, trace: Trace, writes: Writes) -> None:
        """Give a trace what each of its maps' attention writes into the residual stream."""
        for write, seen in zip(writes.in_order, trace.maps, strict=True):
            row_stream, column_stream = streams_of_map(seen.kind)
            first_row = self.spans[row_stream].start
            first_column = self.spans[column_stream].start
            rows = slice(first_row, first_row + len(seen.rows))
            columns = slice(first_column, first_column + len(seen.cols))
            trace.writes.append(write.cut(self.row, rows, columns))
