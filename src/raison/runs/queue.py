"""The queue of shards that are to do, and what it learns from deaths of workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from raison.runs.executor import Careful, Death
from raison.runs.plan import shard_of
from raison.runs.storage import Place

__all__ = ["ShardQueue"]

OTHER = 2  # tries of a text that ends its worker or takes too long
KILLED = 5  # likewise, where the worker was killed from outside: somebody else may be the reason


class DeathPlace(NamedTuple):
    """Where a worker ended."""

    shard: int
    chunk: int
    text: int


@dataclass
class ShardQueue:
    """Shards that are to do, and how careful one has to be with each."""

    shards: list[int]
    careful: dict[int, Careful] = field(default_factory=dict)
    deaths: dict[DeathPlace, list[Death]] = field(default_factory=dict)

    def next(self) -> tuple[int, Careful]:
        """The next shard, which leaves the queue."""
        shard = self.shards.pop(0)
        return shard, self.careful.get(shard, Careful())

    def learn(self, death: Death, place: Place) -> str:
        """Be more careful with a shard after a death; it is to be done again. Returns what to tell."""
        self.shards.insert(0, death.shard)
        careful = self.careful.setdefault(death.shard, Careful())
        deaths = self.deaths.setdefault(DeathPlace(death.shard, death.chunk, death.text), [])
        deaths.append(death)

        by_itself = sum(not each.outside for each in deaths)
        if death.chunk < 0 or (by_itself < OTHER and len(deaths) < KILLED):
            return f"a worker ended in shard {death.shard} ({death.reason}): it is done again"
        if death.text < 0:
            careful.single.add(death.chunk)
            return f"a worker ended again in shard {death.shard} ({death.reason}): its texts are done one by one"
        careful.poison[death.text] = death.reason
        text = shard_of(place, death.shard).texts[death.text]
        return (
            f"the text {text.example.id!r} is given up after {len(deaths)} tries ({death.reason})"
        )
