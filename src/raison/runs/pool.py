"""Worker processes on this machine: each has a model of its own; one that ends is replaced, and its shard done again.

A worker hears its driver by a pipe. When the driver is gone, however it went, the pipe ends and so does the worker; so
nobody writes into a run that somebody else has taken over.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from raison.core import limits
from raison.core.errors import ModelError, RaisonError
from raison.runs.spec import Means, RunSpec
from raison.runs.storage import Unwritten, place_of

__all__ = ["Pool"]

READY = 600.0  # seconds to load the model
FEW = 4  # workers that may be killed while they load it, beside one for each: memory may have run out


def serve(pipe: Connection, where: str, spec: RunSpec, means: Means) -> None:
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's business
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(means.threads)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch

    from raison.runs.worker import Careful, Worker

    torch.set_num_threads(means.threads)
    inbox: list[Any] = []
    arrived = threading.Condition()

    def listen() -> None:
        while True:
            try:
                order = pipe.recv()
            except (EOFError, OSError):
                os._exit(0)  # the driver is gone
            with arrived:
                inbox.append(order)
                arrived.notify()

    try:
        worker = Worker(place_of(where), spec, means)
        limited(means)
        pipe.send(("ready", worker.identity))
    except RaisonError as error:
        with suppress(OSError):
            pipe.send(("unable", str(error)))
        return
    except BrokenPipeError:  # the driver is gone
        return
    threading.Thread(target=listen, daemon=True).start()
    while True:
        with arrived:
            while not inbox:
                arrived.wait()
            number, careful = inbox.pop(0)
        try:
            mark = lambda *where: pipe.send(("at", *where))  # noqa: E731
            pipe.send(("done", worker.work(number, Careful.of(careful), mark)))
        except RaisonError as error:
            pipe.send(("unwritten" if isinstance(error, Unwritten) else "unable", str(error)))


def limited(means: Means) -> None:
    """Let an allocation beyond the limit fail in this worker, before the machine runs out of memory."""
    if means.memory is None or not sys.platform.startswith("linux"):
        return
    import resource

    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + means.memory * 1_000_000, resource.RLIM_INFINITY))


class Member:
    """One worker, and what it is doing."""

    def __init__(self, where: str, spec: RunSpec, means: Means):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, where, spec, means), daemon=True)
        self.process.start()
        other.close()
        self.ready = False
        self.shard: int | None = None
        self.at = (-1, -1)
        self.size = 1  # texts that it is about to do
        self.done = 0  # texts of its shard that it has done
        self.since = time.monotonic()
        self.late = False

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


class Pool:
    """As many workers as asked for."""

    def __init__(self, place: Any, spec: RunSpec, means: Means):
        self.where, self.spec, self.means = str(place), spec, means
        self.room = means.workers
        self.identity = limits.from_json(place.get("environment.json"))["model"]
        self.members = [Member(self.where, spec, means) for _ in range(means.workers)]
        self.unopened = 0  # workers that were killed before they had a model, one after the other
        self.waiting: list[tuple[int, Any]] = []

    def submit(self, number: int, careful: Any) -> None:
        self.waiting.append((number, careful))
        self.assign()

    def assign(self) -> None:
        for member in self.members:
            if member.ready and member.shard is None and self.waiting:
                number, careful = self.waiting.pop(0)
                member.shard, member.at, member.done, member.since = number, (-1, -1), 0, time.monotonic()
                with suppress(OSError):  # it is dead: the next look finds that out
                    member.pipe.send((number, careful.to_dict()))

    def events(self, seconds: float) -> Iterator[Any]:
        """What has happened within so many seconds."""
        pipes = {member.pipe: member for member in self.members}
        ended = {member.process.sentinel: member for member in self.members}
        for each in wait([*pipes, *ended], seconds):
            if each in pipes:
                yield from self.heard(pipes[each])  # type: ignore[index]
        for member in list(self.members):
            if not member.process.is_alive():
                yield from self.heard(member)  # what it said before it ended counts
                yield from self.bury(member)
            elif self.overdue(member):
                member.late = True
                member.process.kill()
        self.assign()

    def under(self) -> dict[int, int]:
        return {member.shard: member.done for member in self.members if member.shard is not None}

    def heard(self, member: Member) -> Iterator[Any]:
        try:
            while member.pipe.poll():
                kind, *told = member.pipe.recv()
                if kind == "at":
                    member.at, member.size, member.done = (told[0], told[1]), told[2], told[3]
                    member.since = time.monotonic()
                elif kind == "ready":
                    member.ready, member.since, self.unopened = True, time.monotonic(), 0
                    if told[0] != self.identity:
                        raise ModelError(f"{self.spec.model!r} is another model than the run was begun with.")
                elif kind == "done":
                    member.shard = None
                    yield told[0]
                elif kind == "unwritten":
                    raise Unwritten(told[0])
                else:
                    raise ModelError(told[0])
        except (EOFError, OSError):
            return

    def bury(self, member: Member) -> Iterator[Any]:
        """Replace a worker that ended; its shard is told."""
        from raison.runs.driver import Death

        code = member.process.exitcode or 0
        self.members.remove(member)
        member.end()
        if not member.ready and member.shard is None:
            self.unopened += 1
            if code != -signal.SIGKILL or self.unopened > self.room + FEW:
                raise ModelError(
                    f"A worker ended while it opened the model ({said(code)}): try it with fewer workers, or with one."
                )
        self.members.append(Member(self.where, self.spec, self.means))
        if member.shard is not None:
            reason = "it took too long" if member.late else said(code)
            yield Death(member.shard, *member.at, reason, outside=code == -signal.SIGKILL and not member.late)

    def overdue(self, member: Member) -> bool:
        spent = time.monotonic() - member.since
        if not member.ready:
            return spent > READY
        if self.means.timeout is None or member.shard is None or member.at[0] < 0:
            return False
        return spent > self.means.timeout * member.size

    def close(self) -> None:
        for member in self.members:
            member.end()


def said(code: int) -> str:
    """An exit code in words."""
    if code < 0:
        try:
            return f"it was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"it was ended by signal {-code}"
    return f"it ended with code {code}"
