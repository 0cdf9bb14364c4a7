"""Text files, plain or packed (.gz): finding them, reading their lines, decoding their bytes."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from raison.core import limits
from raison.core.errors import InputError
from raison.datasets.dataset_rows import Broken, Row, Rows, broken_row

__all__ = [
    "Stream",
    "decode_text",
    "file_open_error",
    "find_file",
    "open_packed",
    "read_good_lines",
    "read_lines",
    "read_lines_of_stream",
]

Stream = IO[bytes] | gzip.GzipFile
DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error)  # a packed file that was cut or changed
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def open_packed(path: Path) -> Stream:
    """An open file, whose bytes are unpacked as they are read (.gz, .tgz)."""
    if path.suffix in (".gz", ".tgz"):
        return gzip.open(path)
    return path.open("rb")


def file_open_error(path: Path, error: OSError) -> InputError:
    """Why a file can't be opened at all, which is no matter of its records."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"There is no file {str(path)!r}: check the path.")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{str(path)!r} is a folder: name a file in it.")
    return InputError(f"{str(path)!r} can't be read ({error}): check the file.")


def find_file(folder: Path, *names: str) -> Path:
    """The first of some files that is there, plain or packed (.gz)."""
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.exists():
                return path
    raise InputError(
        f"There is no file {names[0]!r} in {str(folder)!r}: get it where the data set is published."
    )


def read_good_lines(path: Path) -> Iterator[str]:
    """The lines of a text file in UTF-8; the first broken one is an error."""
    for row in read_lines(path):
        if isinstance(row, Broken):
            raise InputError(f"{row}.")
        yield row.value


def read_lines(path: Path, *, other: str = "", longest: int | None = None) -> Rows[str]:
    """The lines of a text file; see `read_lines_of_stream`."""
    try:
        with open_packed(path) as stream:
            yield from read_lines_of_stream(
                stream,
                str(path),
                other=other,
                longest=longest,
            )
    except OSError as error:
        raise file_open_error(path, error) from None


def read_lines_of_stream(
    stream: Stream,
    file: str,
    *,
    other: str = "",
    longest: int | None = None,
) -> Rows[str]:
    """The lines of an open file in UTF-8, without their ends; only \\n ends a line.

    `longest` is how many bytes a line may have, where that is not the limit of one record.

    `other` says what bytes that are no UTF-8 become: by default the line is broken; `replace` puts U+FFFD in their
    place; the name of an encoding reads such lines in that encoding. Both are counted as mended.
    """
    most = limits.LINE if longest is None else longest
    number = 0

    try:
        for number, raw in enumerate(raw_lines_of_file(stream, most), 1):
            if raw is None:
                size = limits.format_limit_in_megabytes(most)
                yield Broken(
                    file, number, f"it is longer than {size}: write one record in each line"
                )
                continue

            content = line_without_end(raw)
            if number == 1:
                content = content.removeprefix(BYTE_ORDER_MARK)

            try:
                text, mended = decode_text(content, other)
            except InputError as error:
                yield broken_row(file, number, error)
            else:
                yield Row(file, number, text, mended)
    except DAMAGE as error:
        yield Broken(file, number + 1, f"the file is cut or damaged here ({error}); get it again")


def raw_lines_of_file(stream: Stream, most: int) -> Iterator[bytes | None]:
    """The lines of a stream; None for one that is too long to be held, which is read over."""
    while line := stream.readline(most):
        rest = line
        while len(rest) == most and not rest.endswith(b"\n"):
            line = b""
            rest = stream.readline(most)
        yield line or None


def line_without_end(raw: bytes) -> bytes:
    """A line without its \\n or \\r\\n."""
    return raw.removesuffix(b"\n").removesuffix(b"\r")


def decode_text(raw: bytes, other: str = "") -> tuple[str, tuple[str, ...]]:
    """The text of bytes in UTF-8 (or `other`), and what was mended for it."""
    try:
        return raw.decode("utf-8"), ()
    except UnicodeDecodeError as error:
        if not other:
            place = error.start + 1
            byte = raw[error.start]
            raise InputError(f"byte {place} (0x{byte:02x}) is not UTF-8.") from None

    if other == "replace":
        return raw.decode("utf-8", "replace"), ("bytes replaced",)

    try:
        return raw.decode(other), (f"read as {other}",)
    except LookupError:
        raise InputError(
            f"{other!r} is no encoding of texts: name one such as latin-1, or replace."
        ) from None
    except UnicodeDecodeError as error:
        place = error.start + 1
        raise InputError(f"byte {place} is neither UTF-8 nor {other}.") from None
