"""The status of a run, for people and for machines: status.json in its folder, tallied about once a second."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace

from raison.core import limits, progress
from raison.core.errors import InputError
from raison.core.json_record import JsonObject
from raison.runs.executor import ShardDone
from raison.runs.plan import Header, plan_header_of
from raison.runs.run_lock import is_run_driven
from raison.runs.storage import Place, Unwritten
from raison.runs.store import count_failures, count_stored_explanations, done_shards, shards_by_file

__all__ = ["Status", "Tally", "status_of_run"]

NAME = "status.json"
EVERY = 1.0  # seconds
MOST_NOTICES = 20


@dataclass(frozen=True)
class Status:
    """A moment of a run."""

    state: str  # planning | running | done | stopped | failed
    shards: int = 0
    shards_done: int = 0
    texts: int = 0
    texts_done: int = 0
    explanations: int = 0  # of all sessions
    failed: int = 0  # of all sessions
    per_second: float | None = None  # texts, of this session
    seconds_left: float | None = None
    process: int | None = None
    host: str | None = None
    notices: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        if self.state == "planning":  # nothing else is known
            return {"state": self.state, "shards_done": self.shards_done}
        return asdict(self)

    def write(self, place: Place) -> None:
        with suppress(
            Unwritten
        ):  # how far it is can be told from the shards; the run itself says that the disk is full
            place.put(NAME, (json.dumps(self.to_json(), indent=1) + "\n").encode())


class Tally:
    """Counts what is done, and tells it; durations are told by a clock that can't be set back."""

    def __init__(
        self,
        place: Place,
        header: Header,
        *,
        shards: int = 0,
        texts: int = 0,
        failed: int = 0,
        explanations: int = 0,
    ):
        self.place = place
        self.header = header
        self.shards, self.texts, self.texts_before = shards, texts, texts
        self.explanations = explanations
        self.failed = failed
        self.notices: list[str] = []
        self.start = self.last_written = time.monotonic()
        self.state = "running"
        self.texts_under_way = 0  # that are done, of shards that are under way

    def add(self, done: ShardDone) -> None:
        self.shards += 1
        self.texts += done.texts
        self.explanations += done.explanations
        self.failed += done.failed
        for notice in done.notices:
            self.notice(notice)

    def notice(self, notice: str) -> None:
        """Remember something that people should know."""
        self.notices = [*self.notices, notice][-MOST_NOTICES:]

    @property
    def rate(self) -> float:
        """Texts a second, of this session."""
        spent = time.monotonic() - self.start
        return (self.texts + self.texts_under_way - self.texts_before) / spent if spent > 0 else 0.0

    def status(self) -> Status:
        rate = self.rate
        left = None
        if rate > 0:
            left = round((self.header.texts - self.texts - self.texts_under_way) / rate, 1)
        return Status(
            state=self.state,
            shards=self.header.shards,
            shards_done=self.shards,
            texts=self.header.texts,
            texts_done=self.texts,
            explanations=self.explanations,
            failed=self.failed,
            per_second=round(rate, 3),
            seconds_left=left,
            process=os.getpid(),
            host=socket.gethostname(),
            notices=tuple(self.notices),
        )

    def tell(self, under_way: Mapping[int, int] | None = None, *, always: bool = False) -> None:
        """Tell listeners now and the disk now and then (or `always`) how far the run is.

        `under_way`: how many texts are done, of each shard that is under way; lost with it if it is not finished.
        """
        self.texts_under_way = sum((under_way or {}).values())
        what = f"{self.rate:.3g} texts a second" if self.rate > 0 else "texts"
        if self.failed:
            what = f"{what}, {self.failed} failed"
        progress.report(self.texts + self.texts_under_way, self.header.texts, what)
        if always or time.monotonic() - self.last_written >= EVERY:
            self.last_written = time.monotonic()
            self.status().write(self.place)

    def end(self, state: str) -> Status:
        """The last status of a session."""
        self.state = state
        self.tell(always=True)
        return self.status()


def status_of_run(place: Place) -> Status:
    """What the run says of itself, with what is really there."""
    header = plan_header_of(place)
    if header is None:
        if place.get("spec.json") is None:
            raise InputError(f"{str(place)!r} is no run: name the folder of one.")
        if done_shards(place):
            raise InputError(f"{str(place)!r} has results but no plan: put plan/ back.")
        return Status("planning")

    told = last_written_status(place)
    driven = is_run_driven(place)
    done = {number for number in done_shards(place) if number < header.shards}
    status = replace(told, shards=header.shards, shards_done=len(done), texts=header.texts)
    if driven:
        return status

    # files may have gone since it was told
    if told.shards_done != len(done):
        files = shards_by_file(place)
        status = replace(
            status,
            explanations=sum(count_stored_explanations(place, name) for name in files),
            failed=sum(count_failures(place, name) for name in files),
        )
    whole = len(done) == header.shards
    if status.state in ("running", "done"):
        status = replace(status, state="done" if whole else "stopped")
    return replace(status, texts_done=header.texts_in(done), seconds_left=0.0 if whole else None)


def last_written_status(place: Place) -> Status:
    """What stands in status.json; where that is lost or strange, nothing is known."""
    known = {item.name for item in fields(Status)}
    try:
        stored = limits.read_json_text(place.get(NAME) or b"{}")
        status = Status(
            **{"state": "stopped", **{name: stored[name] for name in stored if name in known}}
        )
        return replace(status, notices=tuple(status.notices))
    except (ValueError, TypeError):
        return Status("stopped", shards_done=-1)
