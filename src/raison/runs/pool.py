"""A pool of worker processes on this machine, each with a model; one that ends is replaced, its shard done again.

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
from queue import SimpleQueue
from typing import TypeAlias

from raison.core.errors import ModelError, RaisonError
from raison.runs.executor import Careful, Death, Event, Ready, Refusal, ShardDone, WorkPosition
from raison.runs.run_spec import Means, RunSpec
from raison.runs.storage import Place, place_of

__all__ = ["Pool"]

READY = 600.0  # seconds to load the model
# workers that may be killed while they load it, beside one for each: memory may have run out
FEW = 4

Order: TypeAlias = tuple[int, Careful]  # a shard to do
Message: TypeAlias = Ready | Refusal | WorkPosition | ShardDone  # what a worker says


# -- in the worker's process ----------------------------------------------------------------------------------


def serve_as_worker(pipe: Connection, where: str, spec: RunSpec, means: Means) -> None:
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's business
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(means.threads)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch

    from raison.runs.worker import (
        Worker,
    )  # late, as torch: they read the environment when they are imported

    torch.set_num_threads(means.threads)
    try:
        worker = Worker(place_of(where), spec, means)
        limit_memory_of_worker(means)
        pipe.send(Ready(worker.identity))
    except RaisonError as error:
        with suppress(OSError):
            pipe.send(Refusal.of(error))
        return
    except BrokenPipeError:  # the driver is gone
        return

    orders: SimpleQueue[Order] = SimpleQueue()
    threading.Thread(target=listen_as_worker, args=(pipe, orders), daemon=True).start()
    while True:
        shard, careful = orders.get()
        try:
            pipe.send(worker.work(shard, careful, pipe.send))
        except RaisonError as error:
            pipe.send(Refusal.of(error))


def listen_as_worker(pipe: Connection, orders: SimpleQueue[Order]) -> None:
    """Take orders from the driver, and end this process when it is gone."""
    while True:
        try:
            orders.put(pipe.recv())
        except (EOFError, OSError):
            os._exit(0)


def limit_memory_of_worker(means: Means) -> None:
    """Let an allocation beyond the limit fail in this worker, before the machine runs out of memory."""
    if means.memory is None or not sys.platform.startswith("linux"):
        return
    import resource

    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + means.memory * 1_000_000, resource.RLIM_INFINITY))


# -- in the driver's process ----------------------------------------------------------------------------------


class Member:
    """One worker, and what it is doing."""

    def __init__(self, where: str, spec: RunSpec, means: Means):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(
            target=serve_as_worker, args=(other, where, spec, means), daemon=True
        )
        self.process.start()
        other.close()
        self.ready = False
        self.shard: int | None = None
        self.position = WorkPosition()
        self.since = time.monotonic()  # it is where it is
        self.late = False

    def do(self, shard: int, careful: Careful) -> None:
        """Have a shard done."""
        self.shard = shard
        self.move(WorkPosition())
        with suppress(OSError):  # it is dead: the next look finds that out
            self.pipe.send((shard, careful))

    def move(self, position: WorkPosition) -> None:
        self.position = position
        self.since = time.monotonic()

    def is_overdue(self, timeout: float | None) -> bool:
        """Whether it takes too long to open its model, or for its texts."""
        spent = time.monotonic() - self.since
        if not self.ready:
            return spent > READY
        if timeout is None or self.shard is None or self.position.chunk < 0:
            return False
        return spent > timeout * self.position.size

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


class Pool:
    """As many workers as asked for; their model must have the identity of the run's."""

    def __init__(self, place: Place, spec: RunSpec, means: Means, *, identity: str | None):
        self.where, self.spec, self.means = str(place), spec, means
        self.identity = identity
        self.room = means.workers
        self.members = [Member(self.where, spec, means) for _ in range(means.workers)]
        self.unopened = 0  # workers that were killed before they had a model, one after the other
        self.waiting: list[Order] = []

    def submit(self, shard: int, careful: Careful) -> None:
        self.waiting.append((shard, careful))
        self.assign()

    def assign(self) -> None:
        """Give shards to workers that have nothing to do."""
        for member in self.members:
            if member.ready and member.shard is None and self.waiting:
                member.do(*self.waiting.pop(0))

    def events(self, seconds: float) -> Iterator[Event]:
        """What has happened within so many seconds."""
        pipes = [member.pipe for member in self.members]
        sentinels = [member.process.sentinel for member in self.members]
        ready = wait([*pipes, *sentinels], seconds)
        for member in list(self.members):
            if member.pipe in ready:
                yield from self.hear(member)
        for member in list(self.members):
            if not member.process.is_alive():
                yield from self.hear(member)  # what it said before it ended counts
                yield from self.replace(member)
            elif member.is_overdue(self.means.timeout):
                member.late = True
                member.process.kill()
        self.assign()

    def texts_under_way(self) -> dict[int, int]:
        return {
            member.shard: member.position.done
            for member in self.members
            if member.shard is not None
        }

    def hear(self, member: Member) -> Iterator[Event]:
        """What a worker has said since."""
        try:
            while member.pipe.poll():
                message: Message = member.pipe.recv()
                if isinstance(message, Refusal):
                    raise message.error()
                if isinstance(message, ShardDone):
                    member.shard = None
                    yield message
                elif isinstance(message, WorkPosition):
                    member.move(message)
                else:
                    self.welcome(member, message)
        except (EOFError, OSError):
            return

    def welcome(self, member: Member, message: Ready) -> None:
        """A worker has opened its model, which must be that of the run."""
        member.ready, member.since, self.unopened = True, time.monotonic(), 0
        if message.identity != self.identity:
            raise ModelError(f"{self.spec.model!r} is another model than the run was begun with.")

    def replace(self, member: Member) -> Iterator[Event]:
        """Put another worker in the place of one that ended; its shard is told."""
        code = member.process.exitcode or 0
        killed = code == -signal.SIGKILL
        self.members.remove(member)
        member.end()
        if not member.ready and member.shard is None:
            self.unopened += 1
            if not killed or self.unopened > self.room + FEW:
                raise ModelError(
                    f"A worker ended while it opened the model ({describe_exit_of_worker(code)}): "
                    "try it with fewer workers, or with one."
                )
        self.members.append(Member(self.where, self.spec, self.means))
        if member.shard is not None:
            yield Death(
                shard=member.shard,
                chunk=member.position.chunk,
                text=member.position.text,
                reason="it took too long" if member.late else describe_exit_of_worker(code),
                outside=killed and not member.late,
            )

    def close(self) -> None:
        for member in self.members:
            member.end()


def describe_exit_of_worker(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"it ended with code {code}"
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by signal {-code}"
