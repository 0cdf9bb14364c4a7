"""A forward pass that serves twice: for what the model says, and for the method that then looks into it.

`explain` asks for the prediction first, since it is the target. A method that reads one plain trace of the whole text
would run the same tokens again; inside `caching_passes` the prediction's passes are watched and cached until that trace
takes them. Together they hold what one pass may hold, so memory does not grow with the number of texts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from raison.models.protocol import Budget
from raison.models.runner.batching import Chunk, Piece

if TYPE_CHECKING:
    from raison.models.runner.recorded_pass import RecordedPass

__all__ = ["PassCache", "caching_passes", "current_cache"]


class PassCache:
    """Passes of predictions, watched for what a method will want."""

    def __init__(self, want: frozenset[str]):
        self.want = want
        self.tokens = 0
        self.bytes = 0
        self.passes: list[RecordedPass] = []

    def has_room(self, chunk: Chunk, size: int, budget: Budget) -> bool:
        """Whether this chunk's pass, of so many bytes, may be cached too."""
        return self.tokens + chunk.tokens <= budget.tokens and self.bytes + size <= budget.bytes

    def add(self, recorded: RecordedPass, size: int) -> None:
        self.tokens += recorded.chunk.tokens
        self.bytes += size
        self.passes.append(recorded)

    def take(
        self, plan: Sequence[Piece], want: frozenset[str]
    ) -> tuple[list[RecordedPass], list[Piece]]:
        """Cached passes all of whose rows are in the plan, now with its pieces, and what is left of it to run."""
        cached = self.passes
        self.passes, self.tokens, self.bytes = [], 0, 0  # a graph serves once
        if want != self.want:
            return [], list(plan)

        picked = any(recorded.chunk.picked for recorded in cached)
        waiting: dict[Hashable, list[Piece]] = defaultdict(list)
        for piece in plan:
            waiting[tokens_that_run_in_pass(piece, picked)].append(piece)

        usable: list[RecordedPass] = []
        for recorded in cached:
            keys = [tokens_that_run_in_pass(part, picked) for part in recorded.chunk.parts]
            parts = [waiting[key].pop() for key in keys if waiting[key]]
            shapes = set(map(shape_of_target_in_pass, parts))
            if len(parts) == len(keys) and len(shapes) == 1:
                recorded.chunk = replace(recorded.chunk, parts=parts)
                usable.append(recorded)
            else:
                for part in parts:
                    waiting[tokens_that_run_in_pass(part, picked)].append(part)
        return usable, list(chain(*waiting.values()))


def tokens_that_run_in_pass(piece: Piece, picked: bool) -> Hashable:
    """What a row runs, and which of its rows are computed where some are picked: if equal, passes are the same."""
    encoding = piece.encoding
    tokens: list[bytes] = []
    for index in piece.index:
        tokens.append(encoding.ids[index].tobytes())
        tokens.append(encoding.positions[index].tobytes())
        if encoding.types is not None:
            tokens.append(encoding.types[index].tobytes())
    if picked and piece.target is not None:
        tokens.append(piece.target.rows.tobytes())
    return tuple(tokens)


def shape_of_target_in_pass(piece: Piece) -> Hashable:
    """Targets with as many tokens and a contrast or none can be read together."""
    if piece.target is None:
        return None
    return len(piece.target.ids), piece.target.contrast is None


# the cache of this context, if there is one
current_cache: ContextVar[PassCache | None] = ContextVar("raison_pass_cache", default=None)


@contextmanager
def caching_passes(want: frozenset[str]) -> Iterator[None]:
    """Cache the passes of predictions for a trace that wants this; nothing where it wants nothing."""
    token = current_cache.set(PassCache(want) if want else None)
    try:
        yield
    finally:
        current_cache.reset(token)
