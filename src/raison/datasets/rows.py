"""What stands at one place of a file, and what is wrong with it: the ground on which all formats are read.

A format is a chain of iterators over rows, so that the first ten records of a large file are had at once. A row that
can't be used becomes a `Broken` and reading goes on: whoever asked decides whether that is an error.
"""

from __future__ import annotations

import gzip
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

from raison.core import limits
from raison.core.errors import InputError

__all__ = [
    "Broken",
    "Row",
    "Rows",
    "alternately",
    "decoded",
    "each",
    "in_turn",
    "lines",
    "lines_in",
    "present",
    "unreadable",
]

T = TypeVar("T")
V = TypeVar("V", covariant=True)
U = TypeVar("U")

DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error)  # a packed file that was cut or changed


@dataclass(frozen=True)
class Broken:
    """A record that can't be used: where it stands and why."""

    file: str
    line: int  # from 1; the number of the record where a file has no lines (Parquet, an archive)
    reason: str

    def __str__(self) -> str:
        return f"Line {self.line} of {self.file!r} is broken: {self.reason}"


@dataclass(frozen=True)
class Row(Generic[V]):
    """What stands at one place of a file, as far as it has been read: text, columns, in the end an example."""

    file: str
    line: int
    value: V
    mended: tuple[str, ...] = ()  # what was put right in reading, e.g. bytes that are no UTF-8


Rows = Iterator["Row[T] | Broken"]


# what reading a value of the wrong kind, depth or size may end in
STRANGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


def each(rows: Iterable[Row[T] | Broken], make: Callable[[Row[T]], U]) -> Rows[U]:
    """Every row with its value made into something; what can't be made is broken."""
    for row in rows:
        if isinstance(row, Broken):
            yield row
            continue
        try:
            made = make(row)
        except InputError as error:
            yield Broken(row.file, row.line, str(error).rstrip("."))
            continue
        except STRANGE as error:  # whatever a file may hold, it is this record that is wrong
            yield Broken(row.file, row.line, f"it can't be read ({type(error).__name__}: {str(error)[:80]})")
            continue
        yield Row(row.file, row.line, made, row.mended)


def in_turn(rows: Iterable[Row[Any] | Broken], labels: tuple[str, ...]) -> Rows[Any]:
    """The rows with their labels in turn, as long as they last.

    Many files hold all of one class before the other; the first hundred records of such a file would be of one class.
    """
    waiting: dict[Any, deque[Row[Any]]] = {label: deque() for label in labels}
    order, place = list(labels), 0
    for row in rows:
        if isinstance(row, Broken) or row.value.label not in waiting:
            yield row
            continue
        waiting[row.value.label].append(row)
        while waiting[order[place]]:
            yield waiting[order[place]].popleft()
            place = (place + 1) % len(order)
    while any(waiting.values()):
        if waiting[order[place]]:
            yield waiting[order[place]].popleft()
        place = (place + 1) % len(order)


def alternately(*streams: Rows[T]) -> Rows[T]:
    """One row of each stream in turn, as long as they last."""
    waiting = deque(streams)
    while waiting:
        stream = waiting.popleft()
        for row in stream:
            yield row
            waiting.append(stream)
            break


def unreadable(path: Path, error: OSError) -> InputError:
    """Why a file can't be opened at all, which is no matter of its records."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"There is no file {str(path)!r}: check the path.")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{str(path)!r} is a folder: name a file in it.")
    return InputError(f"{str(path)!r} can't be read ({error}): check the file.")


def present(folder: Path, *names: str) -> Path:
    """The first of some files that is there, plain or packed (.gz)."""
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.exists():
                return path
    raise InputError(f"There is no file {names[0]!r} in {str(folder)!r}: get it where the data set is published.")


def lines(path: Path, *, other: str = "", longest: int | None = None) -> Rows[str]:
    """The lines of a text file, plain or packed (.gz); see `lines_in`."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            yield from lines_in(stream, str(path), other=other, longest=longest)
    except OSError as error:
        raise unreadable(path, error) from None


def lines_in(stream: IO[bytes] | gzip.GzipFile, file: str, *, other: str = "", longest: int | None = None) -> Rows[str]:
    """The lines of an open file in UTF-8, without their ends; only \\n ends a line.

    `longest` is how many bytes a line may have, where that is not the limit of one record.

    `other` says what bytes that are no UTF-8 become: by default the line is broken; `replace` puts U+FFFD in their
    place; the name of an encoding reads such lines in that encoding. Both are counted as mended.
    """
    number = 0
    try:
        most = limits.LINE if longest is None else longest
        for number, raw in enumerate(whole_lines(stream, most), 1):
            if raw is None:
                told = limits.format_megabytes(most)
                yield Broken(file, number, f"it is longer than {told}: write one record in each line")
                continue
            raw = raw[:-1] if raw.endswith(b"\n") else raw
            raw = raw[:-1] if raw.endswith(b"\r") else raw
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            try:
                text, mended = decoded(raw, other)
            except InputError as error:
                yield Broken(file, number, str(error).rstrip("."))
            else:
                yield Row(file, number, text, mended)
    except DAMAGE as error:
        yield Broken(file, number + 1, f"the file is cut or damaged here ({error}); get it again")


def whole_lines(stream: IO[bytes] | gzip.GzipFile, most: int) -> Iterator[bytes | None]:
    """The lines of a stream; None for one that is too long to be held, which is read over."""
    while line := stream.readline(most):
        rest = line
        while len(rest) == most and not rest.endswith(b"\n"):
            line, rest = b"", stream.readline(most)
        yield line or None


def decoded(raw: bytes, other: str = "") -> tuple[str, tuple[str, ...]]:
    """Text of bytes, and what was mended for it."""
    try:
        return raw.decode("utf-8"), ()
    except UnicodeDecodeError as error:
        if not other:
            byte = raw[error.start]
            raise InputError(f"byte {error.start + 1} (0x{byte:02x}) is not UTF-8.") from None
    if other == "replace":
        return raw.decode("utf-8", "replace"), ("bytes replaced",)
    try:
        return raw.decode(other), (f"read as {other}",)
    except LookupError:
        raise InputError(f"{other!r} is no encoding of texts: name one such as latin-1, or replace.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"byte {error.start + 1} is neither UTF-8 nor {other}.") from None
