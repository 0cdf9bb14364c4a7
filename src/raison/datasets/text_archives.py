"""Archives of text files: tar, zip, or the folder that was unpacked from one."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from raison.core import limits
from raison.core.errors import InputError
from raison.datasets.dataset_rows import Broken, Row, Rows, broken_row
from raison.datasets.text_files import (
    Stream,
    decode_text,
    file_open_error,
    open_packed,
    read_lines_of_stream,
)

__all__ = ["read_archive", "read_archive_lines", "read_archive_texts"]

DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error, tarfile.TarError, zipfile.BadZipFile)
END = 1024  # bytes of zeros at the end of a tar file
ENOUGH = limits.FILE + 1  # bytes that are read of a file: one more than the limit


def read_archive(path: Path) -> Rows[tuple[str, bytes]]:
    """Names and contents of the files in an archive, in its order; `line` counts them.

    Nothing is unpacked to the disk. A name that leads out of the archive is refused all the same, since names become
    the ids of examples, and ids the names of files.
    """
    archive = str(path)
    number = 0
    try:
        for number, (name, content) in enumerate(unpack_archive(path), 1):
            fault = archive_member_fault(name, content)
            if fault:
                yield Broken(archive, number, fault)
            else:
                member = (name.removeprefix("./"), content)
                yield Row(archive, number, member)
    except DAMAGE as error:
        yield Broken(
            archive, number + 1, f"the archive is cut or damaged here ({error}); get it again"
        )
    except OSError as error:
        raise file_open_error(path, error) from None


def archive_member_fault(name: str, content: bytes) -> str:
    """What is wrong with a file in an archive; nothing, mostly."""
    if path_leads_out_of_archive(name):
        return f"the name {name!r} leads out of the archive; get it again"
    if len(content) > limits.FILE:
        most = limits.format_limit_in_megabytes(limits.FILE)
        return f"{name!r} is larger than {most}; give a part of it"
    return ""


def path_leads_out_of_archive(name: str) -> bool:
    """Whether the name of a member is absolute, of another drive or above the archive."""
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or name[1:2] == ":"


def unpack_archive(path: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents, of which one byte more than the limit is read."""
    if path.is_dir():
        yield from unpack_folder(path)
    elif path.suffix == ".zip":
        yield from unpack_zip(path)
    else:
        with open_packed(path) as stream:
            yield from unpack_tar(stream)


def unpack_folder(path: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files in a folder, sorted by name."""
    for file in sorted(path.rglob("*")):
        if file.is_file():
            inside = file.relative_to(path).as_posix()
            with file.open("rb") as stream:
                content = stream.read(ENOUGH)
            yield f"{path.name}/{inside}", content


def unpack_zip(path: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files in a zip file."""
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            with archive.open(info) as member:
                yield info.filename, member.read(ENOUGH)


def unpack_tar(file: Stream) -> Iterator[tuple[str, bytes]]:
    """Names and contents in one pass over a tar file, so that its first files are had at once.

    tarfile takes a file that is cut between two members for a complete one, so the end is looked at here: two blocks of
    zeros.
    """
    watched = LastBytes(file)
    with tarfile.open(fileobj=watched, mode="r|") as archive:  # type: ignore[call-overload]
        for info in archive:
            if not info.isfile():
                continue
            member = archive.extractfile(info)
            if member is not None:
                yield info.name, member.read(ENOUGH)

    while watched.read(2**16):
        pass
    if watched.last != bytes(END):
        raise EOFError("the end of the archive is missing")


class LastBytes:
    """A file that remembers the last bytes that were read from it."""

    def __init__(self, file: Stream):
        self.file = file
        self.last = b""

    def read(self, size: int) -> bytes:
        content = self.file.read(size)
        self.last = (self.last + content)[-END:]
        return content


def read_archive_texts(path: Path, *, other: str = "") -> Rows[tuple[str, str]]:
    """Names and texts of the files in an archive."""
    for row in read_archive(path):
        if isinstance(row, Broken):
            yield row
            continue

        name, content = row.value
        file = f"{path}:{name}"
        try:
            text, mended = decode_text(content, other)
        except InputError as error:
            line = content[: first_bad_byte_in_archive(content)].count(b"\n") + 1
            yield broken_row(file, line, error)
        else:
            yield Row(file, 1, (name, text), mended)


def first_bad_byte_in_archive(content: bytes) -> int:
    """The place of the first byte that is no UTF-8."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return 0


def read_archive_lines(path: Path, name: str, *, other: str = "") -> Rows[str]:
    """The lines of one file in an archive, named by the end of its path."""
    for row in read_archive(path):
        if isinstance(row, Broken):
            yield row
            return

        member, content = row.value
        if member == name or member.endswith(f"/{name}"):
            yield from read_lines_of_stream(io.BytesIO(content), f"{path}:{member}", other=other)
            return
    raise InputError(f"There is no file {name!r} in {str(path)!r}: get the archive again.")
