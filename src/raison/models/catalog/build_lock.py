"""The lock of a model folder: one builder at a time, across processes and threads."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["hold_build_lock"]

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

PAUSE = 0.1  # seconds between two tries
STALE = 3600.0  # seconds: no build takes that long
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # some network file systems


@contextmanager
def hold_build_lock(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock file `path` inside the block; call `waiting` again and again until its holder lets go."""
    handle = None
    while handle is None:
        handle = lock_by_system(path) if fcntl is not None else lock_by_creation(path)
        if handle is None:
            waiting()
            time.sleep(PAUSE)
    try:
        yield
    finally:
        if os.name == "nt":  # an open file can't be removed there
            os.close(handle)
            path.unlink(missing_ok=True)
        else:  # removed while still held, so that nobody can take the old file for a new lock
            with suppress(OSError):
                path.unlink(missing_ok=True)
            os.close(handle)


def lock_by_system(path: Path) -> int | None:
    """Try a lock of the operating system, which ends with its process however that dies."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), os.stat(path)):
            return handle
    except (
        FileNotFoundError
    ):  # the former holder has just removed the file that we locked: take the next one
        pass
    except OSError as error:
        if error.errno in NO_LOCKS:
            os.close(handle)
            return lock_by_creation(path, empty_is_free=True)
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN):
            os.close(handle)
            raise
    os.close(handle)
    return None


def lock_by_creation(path: Path, empty_is_free: bool = False) -> int | None:
    """Try to create the file; one that its maker abandoned is removed first.

    Two waiters may both find a file abandoned, and then both build: that costs time, not correctness, since a
    finished folder is published by one rename.
    """
    with suppress(OSError):
        if lock_is_abandoned(path) or (empty_is_free and path.stat().st_size == 0):
            path.unlink()
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return None
    os.write(handle, f"{os.getpid()} {socket.gethostname()}".encode())
    return handle


def lock_is_abandoned(path: Path) -> bool:
    """Whether the lock's maker is gone: its process on this machine is dead, or the file is very old."""
    if time.time() - path.stat().st_mtime > STALE:
        return True
    pid, _, host = path.read_text().partition(" ")
    # on Windows os.kill would end the process instead of asking for it
    if os.name == "nt" or host != socket.gethostname() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
