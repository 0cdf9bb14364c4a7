"""The lock of a run: it has one driver, the second is refused; a lock that its owner left behind is not in the way.

On this machine the operating system holds the lock and lets it go when the process ends, however it ends. At a URL the
owner counts a beat in a file; a lock whose count stands still for a while belongs to nobody. No clock is compared.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from raison.core import limits, progress
from raison.core.errors import InputError
from raison.runs.storage import Local, Place, Unwritten

__all__ = ["BEAT", "driver_lock", "is_run_driven"]

NAME = "lock"
BEAT = 5.0  # seconds


@contextmanager
def driver_lock(place: Place) -> Iterator[None]:
    """The run is ours inside the block."""
    if isinstance(place, Local):
        with file_lock(place):
            yield
    else:
        with heartbeat_lock(place):
            yield


@contextmanager
def file_lock(place: Local) -> Iterator[None]:
    """The lock of the operating system."""
    try:
        place.root.mkdir(parents=True, exist_ok=True)
        file: IO[str] = open(place.root / NAME, "a+")  # noqa: SIM115
    except OSError as error:
        reason = error.strerror or str(error)
        raise Unwritten(
            f"The run folder {str(place.root)!r} can't be written ({reason}): choose another."
        ) from None
    if not try_to_lock(file):
        file.seek(0)
        owner = file.read().strip() or "another process"
        file.close()
        raise run_is_driven_error(place, owner)
    try:
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        yield
    finally:
        with suppress(OSError):
            file.truncate(0)
        file.close()  # and with it the lock


def try_to_lock(file: IO[str]) -> bool:
    """Lock a file; tries again for a moment, since somebody may just be asking whether the run is driven."""
    import fcntl

    for pause in (0.05, 0.05, 0.0):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            time.sleep(pause)
    return False


@contextmanager
def heartbeat_lock(place: Place) -> Iterator[None]:
    """The lock at a URL."""
    mine = uuid.uuid4().hex
    first = place.get(NAME)
    if first is not None:
        time.sleep(2.5 * BEAT)
        if place.get(NAME) not in (first, None):
            raise run_is_driven_error(place, "another driver")
    stop = threading.Event()
    lost = threading.Event()

    def beat() -> None:
        count = 0
        while not stop.wait(BEAT):
            count += 1
            with suppress(Unwritten):
                if not lock_is_ours(place, mine):  # we were asleep, and somebody took the run over
                    lost.set()
                    return
                place.put(NAME, json.dumps({"owner": mine, "beat": count}).encode())

    place.put(NAME, json.dumps({"owner": mine, "beat": 0}).encode())
    time.sleep(0.4 * BEAT)
    if not lock_is_ours(place, mine):  # two began at once: the last to write has it
        raise run_is_driven_error(place, "another driver")
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()

    def ours() -> None:
        if lost.is_set():
            raise run_is_driven_error(place, "another driver")

    try:
        with progress.stoppable(
            ours
        ):  # asked before every batch, and whenever somebody is told how far it is
            yield
    finally:
        stop.set()
        thread.join()
        if not lost.is_set() and lock_is_ours(place, mine):
            place.delete(NAME)


def lock_is_ours(place: Place, mine: str) -> bool:
    """Whether the lock is ours."""
    try:
        lock = limits.read_json_text(place.get(NAME) or b"null")
    except ValueError:
        return False
    return isinstance(lock, dict) and lock.get("owner") == mine


def is_run_driven(place: Place) -> bool:
    """Whether somebody drives the run at the moment."""
    if not isinstance(place, Local):
        return place.get(NAME) is not None
    import fcntl

    try:
        with open(place.root / NAME) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except FileNotFoundError:
        return False
    except OSError:
        return True


def run_is_driven_error(place: Place, owner: str) -> InputError:
    return InputError(
        f"The run {str(place)!r} is being driven by {owner}: wait for it, or stop it first."
    )
