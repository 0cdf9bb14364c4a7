"""Atomic writing (write_whole): a file is written whole or not at all, and half-written ones are known by their names.

Everything that raison writes to the disk goes to a file of another name first, which takes the place of the real one
when it is complete. A killed process leaves that other file behind; `is_half_written` knows it by its name.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["is_half_written", "remove_half_written", "write_whole"]

HALF_WRITTEN = re.compile(r"\.\d+-\d+\.half(\..+)?")


@contextmanager
def write_whole(path: Path, *, durable: bool = False, suffix: str | None = None) -> Iterator[Path]:
    """Yield a name to write to; at the end that file takes the place of `path` whole, or nothing is changed.

    The name ends as that of `path` (or in `suffix`), since writers of pictures and tables go by it. With `durable` the
    file is on the disk when this returns, and not only in memory that a power cut empties.
    """
    ending = suffix
    if ending is None:
        ending = path.suffix
    writer = f"{os.getpid()}-{threading.get_ident()}"
    half = path.with_name(f".{writer}.half{ending}")
    try:
        yield half
        if path.exists():
            shutil.copymode(path, half)
        if durable:
            sync_file(half)
        os.replace(half, path)
        if durable:
            sync_folder(path.parent)
    finally:
        with suppress(OSError):
            half.unlink(missing_ok=True)  # after a failure, so that there is some room again


def sync_file(path: Path) -> None:
    """Have a file's bytes on the disk."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Have the names of a folder's files on the disk; where folders can't be opened as files, that is done anyway."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_half_written(name: str) -> bool:
    """Whether a file of this name was being written by a process that was killed."""
    return HALF_WRITTEN.fullmatch(name) is not None


def remove_half_written(folder: Path) -> None:
    """Delete what killed processes have left in a folder, and in the folders in it."""
    for path in folder.rglob(".*.half*"):
        if is_half_written(path.name):
            path.unlink(missing_ok=True)
