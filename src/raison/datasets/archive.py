"""Archives of text files: tar, zip, or the folder that was unpacked from one."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from raison.core import limits
from raison.core.errors import InputError
from raison.datasets.rows import Broken, Row, Rows, decoded, lines_in, unreadable

__all__ = ["member_lines", "members", "texts"]

DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error, tarfile.TarError, zipfile.BadZipFile)
END = 1024  # bytes of zeros at the end of a tar file


def members(path: Path) -> Rows[tuple[str, bytes]]:
    """Names and contents of the files in an archive, in its order; `line` counts them.

    Nothing is unpacked to the disk. A name that leads out of the archive is refused all the same, since names become
    the ids of examples, and ids the names of files.
    """
    number = 0
    try:
        for number, (name, content) in enumerate(unpacked(path), 1):
            if leads_out(name):
                yield Broken(str(path), number, f"the name {name!r} leads out of the archive; get it again")
            elif len(content) > limits.FILE:
                told = limits.format_megabytes(limits.FILE)
                yield Broken(str(path), number, f"{name!r} is larger than {told}; give a part of it")
            else:
                yield Row(str(path), number, (name.removeprefix("./"), content))
    except DAMAGE as error:
        yield Broken(str(path), number + 1, f"the archive is cut or damaged here ({error}); get it again")
    except OSError as error:
        raise unreadable(path, error) from None


def leads_out(name: str) -> bool:
    parts = PurePosixPath(name.replace("\\", "/"))
    return parts.is_absolute() or ".." in parts.parts or name[1:2] == ":"


def unpacked(path: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents, of which one byte more than the limit is read."""
    most = limits.FILE + 1
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield f"{path.name}/{file.relative_to(path).as_posix()}", first(file, most)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    with archive.open(info) as packed:
                        yield info.filename, packed.read(most)
    else:
        with gzip.open(path) if path.suffix in (".gz", ".tgz") else path.open("rb") as stream:
            yield from untarred(stream, most)


def first(file: Path, most: int) -> bytes:
    with file.open("rb") as stream:
        return stream.read(most)


def untarred(file: IO[bytes] | gzip.GzipFile, most: int) -> Iterator[tuple[str, bytes]]:
    """One pass over a tar file, so that its first files are had at once.

    tarfile takes a file that is cut between two members for a complete one, so the end is looked at here: two blocks of
    zeros.
    """
    watched = Watched(file)
    with tarfile.open(fileobj=watched, mode="r|") as stream:  # type: ignore[call-overload]
        for member in stream:
            packed = stream.extractfile(member) if member.isfile() else None
            if packed is not None:
                yield member.name, packed.read(most)
    while watched.read(2**16):
        pass
    if watched.last != bytes(END):
        raise EOFError("the end of the archive is missing")


class Watched:
    """A file that remembers the last bytes that were read from it."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile):
        self.file = file
        self.last = b""

    def read(self, size: int) -> bytes:
        found = self.file.read(size)
        self.last = (self.last + found)[-END:]
        return found


def texts(path: Path, *, other: str = "") -> Rows[tuple[str, str]]:
    """Names and texts of the files in an archive."""
    for row in members(path):
        if isinstance(row, Broken):
            yield row
            continue
        name, content = row.value
        try:
            text, mended = decoded(content, other)
        except InputError as error:
            yield Broken(f"{path}:{name}", content[: fault_at(content)].count(b"\n") + 1, str(error).rstrip("."))
            continue
        yield Row(f"{path}:{name}", 1, (name, text), mended)


def fault_at(content: bytes) -> int:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return 0


def member_lines(path: Path, name: str, *, other: str = "") -> Rows[str]:
    """The lines of one file in an archive, named by the end of its path."""
    for row in members(path):
        if isinstance(row, Broken):
            yield row
            return
        if row.value[0] == name or row.value[0].endswith(f"/{name}"):
            yield from lines_in(io.BytesIO(row.value[1]), f"{path}:{row.value[0]}", other=other)
            return
    raise InputError(f"There is no file {name!r} in {str(path)!r}: get the archive again.")
