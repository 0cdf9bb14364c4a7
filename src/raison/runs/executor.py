"""What a driver and an executor (the pool, Ray) say to each other: shards to do, events, deaths, refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from raison.core.errors import ModelError, RaisonError
from raison.runs.storage import Unwritten

__all__ = [
    "Careful",
    "Death",
    "Event",
    "Executor",
    "Ready",
    "Refusal",
    "ReportPosition",
    "ShardDone",
    "WorkPosition",
]


@dataclass
class Careful:
    """What earlier tries of a shard have taught."""

    single: set[int] = field(default_factory=set)  # chunks whose texts are done one by one
    poison: dict[int, str] = field(
        default_factory=dict
    )  # place of a text -> why it is not tried again

    def asks_for_single_texts(self, chunk: int, places: tuple[int, ...]) -> bool:
        """Whether the texts of a chunk are done one by one."""
        return chunk in self.single or not self.poison.keys().isdisjoint(places)


@dataclass(frozen=True)
class WorkPosition:
    """What a worker is about to do in its shard."""

    chunk: int = -1  # −1: nothing yet
    text: int = -1  # place of the text, where texts are done one by one; −1: the whole chunk
    size: int = 1  # texts that it is about to do
    done: int = 0  # texts of the shard that are done before


ReportPosition: TypeAlias = Callable[[WorkPosition], None]


@dataclass(frozen=True)
class ShardDone:
    """A shard that is on the disk."""

    shard: int
    texts: int
    explanations: int
    failed: int
    tokens: int
    seconds: float  # CPU
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Death:
    """A worker ended while it worked on a shard."""

    shard: int
    chunk: int  # that it was about to do; −1: none yet
    # place of the text in the shard, where texts are done one by one; −1: the whole chunk
    text: int
    reason: str
    outside: bool  # it was killed, and did not end by itself


Event: TypeAlias = ShardDone | Death | str  # a string: something that people should know


@dataclass(frozen=True)
class Ready:
    """A worker has opened its model."""

    identity: str  # of the model


@dataclass(frozen=True)
class Refusal:
    """A worker can't go on, and no other worker could."""

    reason: str
    unwritten: bool  # a file could not be written; else it is the model

    @classmethod
    def of(cls, error: RaisonError) -> Refusal:
        return cls(str(error), isinstance(error, Unwritten))

    def error(self) -> RaisonError:
        """The error to raise in the driver."""
        return Unwritten(self.reason) if self.unwritten else ModelError(self.reason)


class Executor(Protocol):
    """Does shards somewhere; several at once."""

    room: int  # shards that it takes at a time

    def submit(self, shard: int, careful: Careful) -> None:
        """Have a shard done."""

    def events(self, seconds: float) -> Iterator[Event]:
        """What happens within so many seconds."""

    def texts_under_way(self) -> dict[int, int]:
        """Texts that are done, of each shard that is under way."""

    def close(self) -> None:
        """End all workers."""
