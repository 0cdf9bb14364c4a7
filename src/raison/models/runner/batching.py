"""How questions become rectangular tensors.

Rows of equal length are put together and nothing is padded, so a result does not depend on its neighbours;
`left` and `right` padding exist for machines on which a few long batches beat many short ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.records import Encoding, Target
from raison.models.protocol import Budget

__all__ = ["Chunk", "Piece", "chunks", "pieces", "streams_of"]


def streams_of(encoding: Encoding) -> list[np.ndarray]:
    """Axis indices of each sequence the model reads: one, or source and prefix of an encoder-decoder."""
    if encoding.segments[0] != "source":
        return [np.arange(len(encoding))]
    source = encoding.segments.index("source")
    return [np.flatnonzero(encoding.segment == source), np.flatnonzero(encoding.segment != source)]


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

    def cut(self, start: int, stop: int) -> Piece:
        part = slice(start, stop)
        return Piece(
            self.owner,
            self.which[part],
            self.encoding,
            self.target,
            [index[part] for index in self.index],
            [visible[part] for visible in self.visible],
        )


def pieces(
    owner: int, encoding: Encoding, target: Target | None, keep: np.ndarray, delete: bool, stride: int = 1
) -> Iterator[Piece]:
    """Split the keep-masks [n t] of a question by the lengths that will run: multiples of `stride`, where it can be."""
    size = len(encoding)
    inputs = target.inputs(size) if target is not None else np.ones(size, bool)
    given = target.given(encoding) if target is not None else encoding.fixed
    visible = (keep | given) & inputs
    runs = visible if delete else np.broadcast_to(rounded(inputs, stride), visible.shape)
    streams = streams_of(encoding)
    lengths = np.stack([runs[:, stream].sum(1) for stream in streams], axis=1)  # [n streams]
    shapes, group = np.unique(lengths, axis=0, return_inverse=True)
    for number, shape in enumerate(shapes):
        which = np.flatnonzero(group.reshape(-1) == number)
        index = [
            stream[np.nonzero(runs[np.ix_(which, stream)])[1].reshape(len(which), length)]
            for stream, length in zip(streams, shape, strict=True)
        ]
        shown = [visible[which[:, None], positions] for positions in index]
        yield Piece(owner, which, encoding, target, index, shown)


def rounded(inputs: np.ndarray, stride: int) -> np.ndarray:
    """What runs where nothing is deleted: the inputs, and some tokens behind the target, which it can't see.

    Targets at different places of one text then have the same few lengths and run together.
    """
    size = int(inputs.sum())
    runs = inputs.copy()
    runs[size : -(-size // stride) * stride] = True  # inputs are a prefix of the axis
    return runs


@dataclass
class Chunk:
    """One forward pass: parts with padding on one side, or none."""

    parts: list[Piece]
    lengths: tuple[int, ...]
    side: str
    picked: bool = False  # the output holds only the rows that the targets are read from

    @property
    def rows(self) -> int:
        return sum(len(part) for part in self.parts)

    @property
    def tokens(self) -> int:
        return sum(len(part) * sum(part.lengths) for part in self.parts)

    def offset(self, part: Piece, stream: int) -> int:
        """Columns of padding before the tokens of `part`."""
        return self.lengths[stream] - part.lengths[stream] if self.side == "left" else 0

    def fill(self, stream: int, values: Sequence[np.ndarray], empty: int | bool) -> np.ndarray:
        """[b L] the parts' values [n l] of one stream under each other, padded with `empty`."""
        result = np.full((self.rows, self.lengths[stream]), empty, dtype=values[0].dtype)
        row = 0
        for part, value in zip(self.parts, values, strict=True):
            start = self.offset(part, stream)
            result[row : row + len(part), start : start + value.shape[1]] = value
            row += len(part)
        return result

    def spread(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """[b ..] one value per part repeated for each of its rows."""
        return np.concatenate(
            [np.broadcast_to(v, (len(p), *np.shape(v))) for p, v in zip(self.parts, values, strict=True)]
        )

    def local(self, part: Piece, rows: np.ndarray, stream: int) -> np.ndarray:
        """[n m] where axis positions `rows` stand in the columns of this chunk."""
        found = part.index[stream][:, None, :] == rows[None, :, None]  # [n m L]
        return found.argmax(-1) + self.offset(part, stream)


def chunks(all_pieces: Iterator[Piece] | list[Piece], budget: Budget, row_bytes: object) -> Iterator[Chunk]:
    """Group pieces into forward passes within the budget; `row_bytes(lengths, columns)` is what a row costs."""
    groups: dict[tuple, list[Piece]] = defaultdict(list)
    for piece in all_pieces:
        columns = len(piece.target.ids) if piece.target is not None else 0
        contrasts = piece.target is not None and piece.target.contrast is not None  # read in another way
        kind = (*piece.lengths, contrasts, columns) if budget.padding == "exact" else (contrasts, columns)
        groups[kind].append(piece)
    for key, members in groups.items():
        members.sort(key=lambda p: p.lengths)
        batch: list[Piece] = []
        lengths: tuple[int, ...] = ()
        for piece in members:
            start = 0
            while start < len(piece):
                wider = tuple(map(max, lengths, piece.lengths)) if batch else piece.lengths
                limit = capacity(wider, key[-1], budget, row_bytes) - sum(map(len, batch))
                if limit <= 0:
                    yield Chunk(batch, lengths, budget.padding)
                    batch, lengths = [], ()
                    continue
                part = piece.cut(start, start + limit)
                batch.append(part)
                lengths = wider
                start += len(part)
        if batch:
            yield Chunk(batch, lengths, budget.padding)


def capacity(lengths: tuple[int, ...], columns: int, budget: Budget, row_bytes: object) -> int:
    """How many rows of these lengths one pass may hold: at least one, whatever the budget."""
    by_tokens = budget.tokens // max(1, sum(lengths))
    by_bytes = budget.bytes // max(1, row_bytes(lengths, columns))  # type: ignore[operator]
    return max(1, min(by_tokens, by_bytes, by_tokens if budget.rows is None else budget.rows))
