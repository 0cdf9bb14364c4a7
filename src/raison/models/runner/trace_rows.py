"""What a pass recorded, cut apart again: a trace is about one example and one target, on the axis of its encoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch

from raison.models.attention.call import Seen
from raison.models.attention.residual_writes import Writes
from raison.models.protocol import Map, Trace
from raison.models.runner.batching import Chunk, Piece

__all__ = ["RecordedRound", "RowOfChunk", "streams_of_map"]


def streams_of_map(kind: str) -> tuple[int, int]:
    """The streams of an attention map's rows and columns: cross-attention goes from the prefix to the source."""
    if kind == "decoder":
        return 1, 1
    return (1, 0) if kind == "cross" else (0, 0)


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
        return [self.chunk.span(self.part, stream) for stream in range(len(self.chunk.lengths))]

    @cached_property
    def places(self) -> list[np.ndarray]:
        """Per stream the positions of its tokens on the axis."""
        return [index[0] for index in self.part.index]

    def on_axis(self, streams: Sequence[torch.Tensor]) -> torch.Tensor:
        """[t d] of per stream [b L d]."""
        first = streams[0]
        result = torch.zeros(
            len(self.part.encoding), first.shape[-1], dtype=first.dtype, device=first.device
        )
        for stream, tensor in enumerate(streams):
            place = torch.from_numpy(self.places[stream]).to(result.device)
            result[place] = tensor[self.row, self.spans[stream]].detach().to(result.device)
        return result

    def layers_on_axis(self, streams: Sequence[Sequence[torch.Tensor]]) -> list[torch.Tensor]:
        """Per layer [t d] of per stream, per layer [b L d].

        Source and prefix have blocks of their own; where their numbers differ the shorter stack stays at its end.
        """
        layers = []
        for number in range(max(map(len, streams), default=0)):
            states = [stream[min(number, len(stream) - 1)] for stream in streams]
            layers.append(self.on_axis(states))
        return layers

    def readout(self, shares: torch.Tensor) -> np.ndarray:
        """[t] of [b L]: the readout of this row (it is the last stream that answers)."""
        result = np.zeros(len(self.part.encoding))
        result[self.places[-1]] = shares[self.row, self.spans[-1]].detach().cpu().double().numpy()
        return result

    def trace(self, found: RecordedRound, want: frozenset[str], *, written: bool) -> Trace:
        """What was recorded of this row; a target that is `written` token by token has maps of what stands before it,
        however far the row goes on for other targets."""
        target = self.part.required_target
        trace = Trace(
            encoding=self.part.encoding,
            target=target,
            value=float(found.value[self.row].detach().sum()),
            embeddings=self.on_axis(found.leaves),
        )
        if "gradients" in want:
            trace.gradient = self.on_axis(found.leaf_slopes)
        if want & {"hidden", "hidden_gradients"}:
            trace.hidden = self.layers_on_axis(found.hidden)
            trace.hidden_gradient = self.layers_on_axis(found.hidden_slopes)
        if want & {"attention", "attention_gradients", "writes"}:
            end = max(target.positions) if written else len(self.part.encoding)
            trace.maps = self.maps(found, end)
        if found.writes is not None:
            self.cut_writes(trace, found.writes)
        if found.readout is not None:
            trace.readout = self.readout(found.readout)
        return trace

    def maps(self, found: RecordedRound, end: int) -> list[Map]:
        """The attention maps of this row among the tokens before `end`."""
        result: list[Map] = []
        layers: dict[str, int] = {}
        for number, seen in enumerate(found.maps):
            row_stream, column_stream = streams_of_map(seen.kind)
            rows, row_span = self.before(end, row_stream)
            columns, column_span = self.before(end, column_stream)
            layer = layers[seen.kind] = layers.get(seen.kind, -1) + 1
            slope = None
            if found.map_slopes:
                slope = found.map_slopes[number][self.row, :, row_span, column_span]
            result.append(
                Map(
                    kind=seen.kind,
                    layer=layer,
                    rows=rows,
                    cols=columns,
                    weights=seen.weights[self.row, :, row_span, column_span].detach(),
                    gradient=slope,
                    block=seen.block,
                )
            )
        return result

    def before(self, end: int, stream: int) -> tuple[np.ndarray, slice]:
        """The tokens of a stream that stand before a position: their positions, and their columns in the batch."""
        places = self.places[stream]
        count = int((places < end).sum())  # places rise
        start = self.spans[stream].start
        return places[:count], slice(start, start + count)

    def cut_writes(self, trace: Trace, writes: Writes) -> None:
        """Give a trace what each of its maps' attention writes into the residual stream."""
        for write, seen in zip(writes.in_order, trace.maps, strict=True):
            row_stream, column_stream = streams_of_map(seen.kind)
            first_row = self.spans[row_stream].start
            first_column = self.spans[column_stream].start
            rows = slice(first_row, first_row + len(seen.rows))
            columns = slice(first_column, first_column + len(seen.cols))
            trace.writes.append(write.cut(self.row, rows, columns))
