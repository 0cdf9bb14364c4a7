"""How far a run is, for people and for machines: status.json in its folder, replaced about once a second."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from raison.core import limits, progress
from raison.core.errors import InputError
from raison.runs.plan import Header, header_of
from raison.runs.storage import Place, Unwritten
from raison.runs.store import done_shards, explanations, homes
from raison.runs.worker import Done

__all__ = ["Status", "Tally", "status_of"]

NAME = "status.json"
EVERY = 1.0  # seconds


@dataclass(frozen=True)
class Status:
    """A moment of a run."""

    state: str  # planning | running | done | stopped | failed
    shards: int
    shards_done: int
    texts: int
    texts_done: int
    explanations: int  # of all sessions
    failed: int  # of all sessions
    per_second: float  # texts, of this session
    seconds_left: float | None
    process: int
    host: str
    notices: tuple[str, ...] = ()


class Tally:
    """Counts what is done, and tells it; durations are told by a clock that can't be set back."""

    def __init__(self, place: Place, header: Header, done: int, texts: int, failed: int = 0, explanations: int = 0):
        self.place, self.header = place, header
        self.shards, self.texts, self.before = done, texts, texts
        self.explanations, self.failed = explanations, failed
        self.notices: list[str] = []
        self.start = self.told = time.monotonic()
        self.state = "running"
        self.under = 0  # texts that are done, of shards that are under way

    def add(self, done: Done) -> None:
        self.shards += 1
        self.texts += done.texts
        self.explanations += done.explanations
        self.failed += done.failed
        self.notice(*done.notices)

    def notice(self, *said: str) -> None:
        self.notices = [*self.notices, *said][-20:]

    @property
    def rate(self) -> float:
        """Texts a second, of this session."""
        spent = time.monotonic() - self.start
        return (self.texts + self.under - self.before) / spent if spent > 0 else 0.0

    def now(self) -> Status:
        rate = self.rate
        left = (self.header.texts - self.texts - self.under) / rate if rate > 0 else None
        return Status(
            self.state, self.header.shards, self.shards, self.header.texts, self.texts, self.explanations, self.failed,
            round(rate, 3), None if left is None else round(left, 1), os.getpid(), socket.gethostname(),
            tuple(self.notices),
        )  # fmt: skip

    def tell(self, under: Mapping[int, int] | None = None, always: bool = False) -> None:
        """`under`: how many texts are done, of each shard that is under way; lost with it if it is not finished."""
        self.under = sum((under or {}).values())
        rate = f"{self.rate:.3g} texts a second" if self.rate > 0 else "texts"
        told = f"{rate}, {self.failed} failed" if self.failed else rate
        progress.report(self.texts + self.under, self.header.texts, told)
        if always or time.monotonic() - self.told >= EVERY:
            self.told = time.monotonic()
            write(self.place, self.now())

    def end(self, state: str) -> Status:
        self.state = state
        self.tell(always=True)
        return self.now()


def write(place: Place, status: Status) -> None:
    with suppress(Unwritten):  # how far it is can be told from the shards; the run itself says that the disk is full
        place.put(NAME, (json.dumps(asdict(status), indent=1) + "\n").encode())


def status_of(place: Place) -> dict[str, Any]:
    """What the run says of itself, with what is really there."""
    header = header_of(place)
    if header is None:
        if place.get("spec.json") is None:
            raise InputError(f"{str(place)!r} is no run: name the folder of one.")
        if done_shards(place):
            raise InputError(f"{str(place)!r} has results but no plan: put plan/ back.")
        return {"state": "planning", "shards_done": 0}
    try:
        told: Any = limits.from_json(place.get(NAME) or b"{}")
    except ValueError:
        told = {}
    told = told if isinstance(told, dict) else {}
    if not isinstance(told.get("notices", []), list):
        del told["notices"]
    done = {number for number in done_shards(place) if number < header.shards}
    if told.get("shards_done") != len(done) and not driven(place):
        told["explanations"] = sum(explanations(place, name) for name in homes(place))
    there = {"shards": header.shards, "shards_done": len(done), "texts": header.texts}
    told = {"state": "stopped", **told, **there}
    if not driven(place):  # files may have gone since it was told
        whole = len(done) == header.shards
        told["texts_done"] = sum(header.counts[number] for number in done)
        told["seconds_left"] = 0.0 if whole else None
        if told["state"] in ("running", "done"):
            told["state"] = "done" if whole else "stopped"
    return told


def driven(place: Place) -> bool:
    """Whether somebody drives the run at the moment."""
    from raison.runs.lock import NAME as LOCK
    from raison.runs.storage import Local

    if not isinstance(place, Local):
        return place.get(LOCK) is not None
    import fcntl

    try:
        with open(place.root / LOCK) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except FileNotFoundError:
        return False
    except OSError:
        return True
