"""Jobs that clients wait for: a fair queue of workers, progress, and an end when the client has left.

Fair means: who has least running is next, and in turn; one thread more than one client can have is kept for another
that has nothing running; and where one client fills the queue, there are places for the others behind it.

Threads share the models; what a call records or changes travels in context variables of its thread
(models/attention/call.py), so requests can't meet. A job looks before every batch of the model whether anybody still
waits for it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from raison.core import progress
from raison.core.errors import RaisonError

__all__ = [
    "Busy",
    "Client",
    "Event",
    "Failure",
    "Gone",
    "Job",
    "Overdue",
    "Progress",
    "Result",
    "Work",
    "Workers",
]

Client: TypeAlias = "tuple[str, str]"  # address and session
Work: TypeAlias = "Callable[[], object]"  # what a thread has to do; gives what the client gets

OFTEN = 0.1  # seconds between two reports of progress


class Gone(BaseException):
    """Nobody waits for this work any more; like Ctrl-C it is no failure of the code that it ends."""


class Overdue(RaisonError):
    """Work that takes longer than is allowed."""


class Busy(RaisonError):
    """Too many requests wait already."""

    def __init__(self, seconds: int):
        super().__init__(f"Too many requests are waiting: try again in {seconds} s.")
        self.seconds = seconds


@dataclass(frozen=True)
class Progress:
    """How far a job is."""

    done: int
    total: int
    what: str


@dataclass(frozen=True)
class Result:
    """What a job has given; its last event."""

    value: object


@dataclass(frozen=True)
class Failure:
    """What a job has ended with instead of a result."""

    error: BaseException


Event: TypeAlias = "Progress | Result | Failure"


class Job:
    """One piece of work, the thread that does it and the coroutine that waits for it."""

    def __init__(self, work: Work, seconds: float, client: Client):
        self.work = work
        self.seconds = seconds
        self.client = client
        self.loop = asyncio.get_running_loop()
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self.left = threading.Event()
        self.deadline = float("inf")
        self.last_report = 0.0

    # -- in the thread that works ------------------------------------------------------------------

    def run(self) -> None:
        self.deadline = time.monotonic() + self.seconds
        try:
            with progress.stoppable(self.check), progress.listen(self.report):
                self.check()
                self.send(Result(self.work()))
        except Gone:
            return
        except BaseException as error:
            self.send(Failure(error))

    def check(self) -> None:
        if self.left.is_set():
            raise Gone
        if time.monotonic() > self.deadline:
            raise Overdue(
                f"This takes longer than the {self.seconds:g} s that the server allows: give a shorter text or fewer "
                "steps, or use the library."
            )

    def report(self, done: int, total: int, what: str) -> None:
        now = time.monotonic()
        if now - self.last_report >= OFTEN:
            self.last_report = now
            self.send(Progress(done, total, what))

    def send(self, event: Event) -> None:
        """Hand an event over to the coroutine that waits."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.events.put_nowait, event)


class Workers:
    """The threads, and the jobs that wait for one."""

    def __init__(self, workers: int, waiting: int, seconds: float):
        self.workers, self.most, self.seconds = workers, waiting, seconds
        self.waiting: list[Job] = []
        self.running: set[Job] = set()
        self.turns: dict[Client, int] = {}  # when each client with work here had its last turn
        self.turn = 0
        self.changed = threading.Condition()
        self.closed = False
        self.spent = 1.0  # seconds of a job, as of late
        names = [f"raison-{number}" for number in range(workers + 1)]
        self.threads = [
            threading.Thread(target=self.serve, daemon=True, name=name) for name in names
        ]
        for thread in self.threads:
            thread.start()

    def submit(self, work: Work, client: Client = ("", "")) -> Job:
        """Have some work done; refused where too much waits already."""
        job = Job(work, self.seconds, client)
        with self.changed:
            if self.full(client):
                ahead = len(self.waiting) + len(self.running)
                raise Busy(max(1, round(self.spent * ahead / self.workers)))
            self.waiting.append(job)
            self.changed.notify_all()
        return job

    def full(self, client: Client) -> bool:
        """Whether there is no place for one more job of a client: behind the usual ones each has a share of as many."""
        free = max(0, self.workers - len(self.running))
        held = self.held(client)
        if len(self.running) <= self.workers and not held:
            free = max(free, 1)  # the spare thread
        if len(self.waiting) < self.most + free:
            return False
        clients = {client, *(job.client for job in (*self.waiting, *self.running))}
        share = max(1, (self.most + self.workers) // len(clients))
        return held >= share or len(self.waiting) >= 2 * self.most + free

    def held(self, client: Client) -> int:
        """How many jobs of a client wait or run."""
        return sum(job.client == client for job in (*self.waiting, *self.running))

    def next(self) -> Job | None:
        """The job that is to be done now; None if none is, or only a client's that has its threads already."""
        if not self.waiting:
            return None
        job = min(self.waiting, key=self.turn_of)  # of equals the first
        only_spare_thread = len(self.running) >= self.workers
        if only_spare_thread and self.running_of(job.client):
            return None
        return job

    def turn_of(self, job: Job) -> tuple[int, int]:
        """What jobs are sorted by: how much of the client runs, then when it had its last turn."""
        return self.running_of(job.client), self.turns.get(job.client, 0)

    def running_of(self, client: Client) -> int:
        """How many jobs of a client run."""
        return sum(job.client == client for job in self.running)

    def leave(self, job: Job) -> None:
        """Nobody waits for a job any more: it goes out of the queue, or ends before its next batch."""
        job.left.set()
        with self.changed:
            if job in self.waiting:
                self.waiting.remove(job)
                self.forget(job.client)

    def forget(self, client: Client) -> None:
        """Clients without work here are not remembered."""
        if not self.held(client):
            self.turns.pop(client, None)

    def serve(self) -> None:
        """What each thread does: one job after the other, until the workers are closed."""
        while (job := self.take()) is not None:
            start = time.monotonic()
            try:
                job.run()
            finally:
                with self.changed:
                    self.running.discard(job)
                    self.forget(job.client)
                    self.spent += 0.2 * (time.monotonic() - start - self.spent)
                    self.changed.notify_all()

    def take(self) -> Job | None:
        """Wait for the next job and begin with it; None when the workers are closed."""
        with self.changed:
            job = self.next()
            while job is None and not self.closed:
                self.changed.wait()
                job = self.next()
            if job is None or self.closed:
                return None
            self.waiting.remove(job)
            self.running.add(job)
            self.turn += 1
            self.turns[job.client] = self.turn
        return job

    def close(self) -> None:
        with self.changed:
            self.closed = True
            for job in (*self.waiting, *self.running):
                job.left.set()
            self.changed.notify_all()
