"""Batches: pieces of questions that have equal lengths, and chunks of them that run as one forward pass.

Rows of equal length are put together and nothing is padded, so a result does not depend on its neighbours;
`left` and `right` padding exist for machines on which a few long batches beat many short ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from raison.core.records import Encoding, Target
from raison.models.protocol import Budget

__all__ = [
    "AskedTargets",
    "Chunk",
    "Piece",
    "RowBytes",
    "RowCost",
    "chunks",
    "pieces",
    "pieces_of_whole_texts",
    "streams_of_batch_piece",
]

# (lengths of the streams, columns) -> bytes of one row
RowBytes = Callable[[tuple[int, ...], int], int]


def streams_of_batch_piece(encoding: Encoding) -> list[np.ndarray]:
    """Axis indices of each sequence the model reads: one, or source and prefix of an encoder-decoder."""
    if encoding.segments[0] != "source":
        return [np.arange(len(encoding))]
    is_source = encoding.segment == 0
    source = np.flatnonzero(is_source)
    prefix = np.flatnonzero(~is_source)
    return [source, prefix]


@dataclass
class Piece:
    """Rows of one question that have the same lengths."""

    owner: int  # index of the question
    which: np.ndarray  # [n] rows of the question's keep
    encoding: Encoding
    target: Target | None
    index: list[np.ndarray]  # per stream [n L]: positions on the axis
    visible: list[np.ndarray]  # per stream [n L]: False where a token runs but is removed

    def __len__(self) -> int:
        return len(self.which)

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(index.shape[1] for index in self.index)

    @property
    def required_target(self) -> Target:
        """The target, of a piece that has one."""
        if self.target is None:
            raise ValueError("this piece asks about no target")
        return self.target

    def cut(self, start: int, stop: int) -> Piece:
        part = slice(start, stop)
        return Piece(
            owner=self.owner,
            which=self.which[part],
            encoding=self.encoding,
            target=self.target,
            index=[index[part] for index in self.index],
            visible=[visible[part] for visible in self.visible],
        )


def pieces(
    owner: int,
    encoding: Encoding,
    target: Target | None,
    keep: np.ndarray,
    delete: bool,
    stride: int = 1,
) -> Iterator[Piece]:
    """Split the keep-masks [n t] of a question by the lengths that will run: multiples of `stride`, where it can be."""
    size = len(encoding)
    inputs = np.ones(size, bool)
    given = encoding.fixed
    if target is not None:
        inputs = target.inputs(size)
        given = target.given(encoding)
    visible = (keep | given) & inputs
    runs = visible
    if not delete:
        runs = np.broadcast_to(batch_inputs_in_strides(inputs, stride), visible.shape)

    streams = streams_of_batch_piece(encoding)
    counts = [runs[:, stream].sum(1) for stream in streams]
    lengths = np.stack(counts, axis=1)  # [n streams]
    shapes, inverse = np.unique(lengths, axis=0, return_inverse=True)
    group = inverse.reshape(-1)
    for number, shape in enumerate(shapes):
        which = np.flatnonzero(group == number)
        rows = which[:, None]
        index = []
        shown = []
        for stream, length in zip(streams, shape, strict=True):
            _, columns = np.nonzero(runs[rows, stream])
            by_row = columns.reshape(len(which), length)
            positions = stream[by_row]
            index.append(positions)
            shown.append(visible[rows, positions])
        yield Piece(owner, which, encoding, target, index, shown)


def pieces_of_whole_texts(
    encodings: Sequence[Encoding], targets: Sequence[Target | None] = ()
) -> list[Piece]:
    """One row for each text, of which nothing is removed."""
    wanted = targets or [None] * len(encodings)
    plan: list[Piece] = []
    for number, (encoding, target) in enumerate(zip(encodings, wanted, strict=True)):
        everything = np.ones((1, len(encoding)), bool)
        plan += pieces(number, encoding, target, everything, delete=False)
    return plan


def batch_inputs_in_strides(inputs: np.ndarray, stride: int) -> np.ndarray:
    """What runs where nothing is deleted: the inputs, and some tokens behind the target, which it can't see.

    Targets at different places of one text then have the same few lengths and run together.
    """
    size = int(inputs.sum())
    strides = -(-size // stride)
    runs: np.ndarray = inputs.copy()
    runs[size : strides * stride] = True  # inputs are a prefix of the axis
    return runs


@dataclass
class AskedTargets:
    """What the rows of a forward pass are asked about."""

    ids: np.ndarray  # [b m] the outcomes
    # [b m] the columns from which they are read; m = 0 where they are read from no rows
    rows: np.ndarray
    contrasts: np.ndarray | None = None  # [b m] the outcomes that these are compared with


@dataclass
class Chunk:
    """One forward pass: parts with padding on one side, or none."""

    parts: list[Piece]
    lengths: tuple[int, ...]
    side: str
    picked: bool = False  # the output holds only the rows that the targets are read from
    asked: AskedTargets | None = field(init=False)  # None where the parts ask about no target

    outputs: list[str] = field(init=False)  # [b] the unit in which each row is answered

    def __post_init__(self) -> None:
        self.asked = self.asked_targets()
        self.outputs = self.target_outputs()

    @property
    def rows(self) -> int:
        return sum(len(part) for part in self.parts)

    @property
    def tokens(self) -> int:
        total = 0
        for part in self.parts:
            total += len(part) * sum(part.lengths)
        return total

    def offset(self, part: Piece, stream: int) -> int:
        """Columns of padding before the tokens of `part`."""
        if self.side != "left":
            return 0
        return self.lengths[stream] - part.lengths[stream]

    def span(self, part: Piece, stream: int) -> slice:
        """The columns in which the tokens of `part` stand."""
        start = self.offset(part, stream)
        return slice(start, start + part.lengths[stream])

    def fill(self, stream: int, values: Sequence[np.ndarray], empty: int | bool) -> np.ndarray:
        """[b L] the parts' values [n l] of one stream under each other, padded with `empty`."""
        shape = (self.rows, self.lengths[stream])
        result = np.full(shape, empty, dtype=values[0].dtype)
        row = 0
        for part, value in zip(self.parts, values, strict=True):
            end = row + len(part)
            _, width = value.shape
            start = self.offset(part, stream)
            result[row:end, start : start + width] = value
            row = end
        return result

    def spread(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """[b ..] one value per part repeated for each of its rows."""
        repeated = []
        for part, value in zip(self.parts, values, strict=True):
            shape = (len(part), *np.shape(value))
            repeated.append(np.broadcast_to(value, shape))
        result: np.ndarray = np.concatenate(repeated)
        return result

    def local(self, part: Piece, rows: np.ndarray, stream: int) -> np.ndarray:
        """[n m] where axis positions `rows` stand in the columns of this chunk."""
        index = part.index[stream]
        found = index[:, None, :] == rows[None, :, None]  # [n m L]
        places = found.argmax(-1)
        columns: np.ndarray = places + self.offset(part, stream)
        return columns

    def target_columns(self) -> np.ndarray:
        """[b m] the columns of the last stream from which the targets are read."""
        last = len(self.lengths) - 1
        columns = []
        for part in self.parts:
            target = part.required_target
            columns.append(self.local(part, target.rows, last))
        result: np.ndarray = np.concatenate(columns)
        return result

    def target_outputs(self) -> list[str]:
        """[b] the unit in which each row is answered; empty where the parts ask about no target."""
        outputs: list[str] = []
        for part in self.parts:
            if part.target is not None:
                outputs += [part.target.output] * len(part)
        return outputs

    def asked_targets(self) -> AskedTargets | None:
        """The targets of its rows; None where the parts ask about none."""
        if self.parts[0].target is None:  # all parts ask about a target, or none does
            return None

        ids = []
        contrasts = []
        read_at_rows = True
        for part in self.parts:
            target = part.required_target
            ids.append(np.array(target.ids))
            if target.contrast is not None:
                contrasts.append(np.array(target.contrast))
            if not target.rows.size:
                read_at_rows = False

        no_rows = np.zeros((self.rows, 0), int)
        asked = AskedTargets(ids=self.spread(ids), rows=no_rows)
        if contrasts:
            asked.contrasts = self.spread(contrasts)
        if read_at_rows:
            asked.rows = self.target_columns()
        return asked


@dataclass(frozen=True)
class RowCost:
    """Rough memory of one row of a batch; called with its lengths and the number of its target's tokens."""

    heads: int
    vocabulary: int  # outcomes of each column; 0 where they are few
    layers: int = 1  # whose attention is held at the same time

    def __call__(self, lengths: tuple[int, ...], columns: int) -> int:
        longest = max(lengths, default=1)
        attention = 12 * self.heads * longest**2
        outcomes = 12 * max(columns, 1) * self.vocabulary
        return self.layers * (attention + outcomes)


def chunks(all_pieces: Iterable[Piece], budget: Budget, row_bytes: RowBytes) -> Iterator[Chunk]:
    """Group pieces into forward passes within the budget."""
    groups: dict[tuple[int, ...], list[Piece]] = defaultdict(list)
    for piece in all_pieces:
        columns = 0
        has_contrast = False  # read in another way
        if piece.target is not None:
            columns = len(piece.target.ids)
            has_contrast = piece.target.contrast is not None
        lengths: tuple[int, ...] = ()
        if budget.padding == "exact":
            lengths = piece.lengths
        kind = (*lengths, int(has_contrast), columns)
        groups[kind].append(piece)

    for kind, members in groups.items():
        members.sort(key=lambda piece: piece.lengths)
        *_, columns = kind
        yield from chunks_of_group(members, columns, budget, row_bytes)


def chunks_of_group(
    members: list[Piece], columns: int, budget: Budget, row_bytes: RowBytes
) -> Iterator[Chunk]:
    """Fill one forward pass after the other with pieces that may run together."""
    batch: list[Piece] = []
    lengths: tuple[int, ...] = ()
    for piece in members:
        start = 0
        while start < len(piece):
            wider = piece.lengths
            if batch:
                wider = tuple(map(max, lengths, piece.lengths))
            taken = sum(map(len, batch))
            free = rows_that_fit_in_batch(wider, columns, budget, row_bytes) - taken
            if free <= 0:
                yield Chunk(batch, lengths, budget.padding)
                batch = []
                lengths = ()
                continue
            part = piece.cut(start, start + free)
            batch.append(part)
            lengths = wider
            start += len(part)
    if batch:
        yield Chunk(batch, lengths, budget.padding)


def rows_that_fit_in_batch(
    lengths: tuple[int, ...], columns: int, budget: Budget, row_bytes: RowBytes
) -> int:
    """How many rows of these lengths one pass may hold: at least one, whatever the budget."""
    tokens_of_row = max(1, sum(lengths))
    bytes_of_row = max(1, row_bytes(lengths, columns))
    limits = [budget.tokens // tokens_of_row, budget.bytes // bytes_of_row]
    if budget.rows is not None:
        limits.append(budget.rows)
    return max(1, min(limits))
