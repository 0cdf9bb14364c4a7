"""A forward pass that serves twice: for what the model says, and for the method that then looks into it.

`explain` asks for the prediction first, since it is the target. A method that reads one plain trace of the whole text
would run the same tokens again; inside `keeping` the prediction's passes are watched and kept until that trace takes
them. Together they hold what one pass may hold, so memory does not grow with the number of texts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from raison.models.protocol import Budget
from raison.models.runner.batching import Chunk, Piece

if TYPE_CHECKING:
    from raison.models.runner.trace import Pass

__all__ = ["Keeper", "current", "keeping"]


class Keeper:
    """Passes of predictions, watched for what a method will want."""

    def __init__(self, want: frozenset[str]):
        self.want = want
        self.tokens = 0
        self.bytes = 0
        self.passes: list[Pass] = []

    def room(self, chunk: Chunk, size: int, budget: Budget) -> bool:
        """Whether this chunk's pass, of so many bytes, may be kept too."""
        return self.tokens + chunk.tokens <= budget.tokens and self.bytes + size <= budget.bytes

    def keep(self, run: Pass, size: int) -> None:
        self.tokens += run.chunk.tokens
        self.bytes += size
        self.passes.append(run)

    def recalled(self, plan: Sequence[Piece], want: frozenset[str]) -> tuple[list[Pass], list[Piece]]:
        """Kept passes all of whose rows are in the plan, now with its pieces, and what is left of it to run."""
        kept, self.passes, self.tokens, self.bytes = self.passes, [], 0, 0  # a graph serves once
        if want != self.want:
            return [], list(plan)
        picked = any(run.chunk.picked for run in kept)
        waiting: dict[Hashable, list[Piece]] = defaultdict(list)
        for piece in plan:
            waiting[tokens_of(piece, picked)].append(piece)
        found: list[Pass] = []
        for run in kept:
            keys = [tokens_of(part, picked) for part in run.chunk.parts]
            parts = [waiting[key].pop() for key in keys if waiting[key]]
            if len(parts) == len(keys) and len({way_of(part) for part in parts}) == 1:
                run.chunk.parts = parts
                found.append(run)
            else:
                for part in parts:
                    waiting[tokens_of(part, picked)].append(part)
        return found, [piece for pieces in waiting.values() for piece in pieces]


def tokens_of(piece: Piece, picked: bool) -> Hashable:
    """What a row runs, and which of its rows are computed where some are picked: if equal, passes are the same."""
    encoding, index = piece.encoding, piece.index
    types = None if encoding.types is None else tuple(encoding.types[i].tobytes() for i in index)
    rows = piece.target.rows.tobytes() if picked and piece.target is not None else b""
    return tuple((encoding.ids[i].tobytes(), encoding.positions[i].tobytes()) for i in index), types, rows


def way_of(piece: Piece) -> Hashable:
    """Targets with as many tokens and a contrast or none can be read together."""
    return piece.target and (len(piece.target.ids), piece.target.contrast is None)


_keeper: ContextVar[Keeper | None] = ContextVar("raison_keeper", default=None)


def current() -> Keeper | None:
    """Who keeps the passes of this context, if anybody."""
    return _keeper.get()


@contextmanager
def keeping(want: frozenset[str]) -> Iterator[None]:
    """Keep the passes of predictions for a trace that wants this; nothing where it wants nothing."""
    token = _keeper.set(Keeper(want) if want else None)
    try:
        yield
    finally:
        _keeper.reset(token)
