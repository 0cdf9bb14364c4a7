"""Work that a client waits for: a bounded queue, a few threads, progress, and an end when the client has left.

Threads share the models; what a call records or changes travels in context variables of its thread (models/tap.py), so
requests can't meet. A job looks before every batch of the model whether anybody still waits for it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from raison import progress
from raison.errors import RaisonError

__all__ = ["Busy", "Gone", "Job", "Overdue", "Workers"]

OFTEN = 0.1  # seconds between two reports of progress


class Gone(Exception):
    """Nobody waits for this work any more."""


class Overdue(RaisonError):
    """Work that takes longer than is allowed."""


class Busy(RaisonError):
    """Too many requests wait already."""

    def __init__(self, seconds: int):
        super().__init__(f"Too many requests are waiting: try again in {seconds} s.")
        self.seconds = seconds


class Job:
    """One piece of work, the thread that does it and the coroutine that waits for it."""

    def __init__(self, work: Callable[[], Any], seconds: float):
        self.work = work
        self.seconds = seconds
        self.loop = asyncio.get_running_loop()
        self.events: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self.left = threading.Event()
        self.deadline = float("inf")
        self.told = 0.0

    # -- in the thread that works ------------------------------------------------------------------

    def run(self) -> None:
        self.deadline = time.monotonic() + self.seconds
        try:
            with progress.stoppable(self.check), progress.listen(self.report):
                self.check()
                self.tell("result", self.work())
        except Gone:
            return
        except BaseException as error:
            self.tell("error", error)

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
        if now - self.told >= OFTEN:
            self.told = now
            self.tell("progress", {"done": done, "total": total, "what": what})

    def tell(self, kind: str, what: Any) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.events.put_nowait, (kind, what))


class Workers:
    """The threads, and the jobs that wait for one."""

    def __init__(self, workers: int, waiting: int, seconds: float):
        self.most, self.seconds = waiting, seconds
        self.waiting: deque[Job] = deque()
        self.running: set[Job] = set()
        self.changed = threading.Condition()
        self.closed = False
        self.spent = 1.0  # seconds of a job, as of late
        self.threads = [threading.Thread(target=self.serve, daemon=True, name=f"raison-{n}") for n in range(workers)]
        for thread in self.threads:
            thread.start()

    def submit(self, work: Callable[[], Any]) -> Job:
        """Have some work done; refused where too much waits already."""
        job = Job(work, self.seconds)
        with self.changed:
            ahead = len(self.waiting) + len(self.running)
            if ahead >= self.most + len(self.threads):
                raise Busy(max(1, round(self.spent * ahead / len(self.threads))))
            self.waiting.append(job)
            self.changed.notify()
        return job

    def leave(self, job: Job) -> None:
        """Nobody waits for a job any more: it goes out of the queue, or ends before its next batch."""
        job.left.set()
        with self.changed:
            if job in self.waiting:
                self.waiting.remove(job)

    def serve(self) -> None:
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting or self.closed)
                if self.closed:
                    return
                job = self.waiting.popleft()
                self.running.add(job)
            start = time.monotonic()
            try:
                job.run()
            finally:
                with self.changed:
                    self.running.discard(job)
                    self.spent += 0.2 * (time.monotonic() - start - self.spent)

    def close(self) -> None:
        with self.changed:
            self.closed = True
            for job in (*self.waiting, *self.running):
                job.left.set()
            self.changed.notify_all()
