"""Rows of a file, whole or broken: what stands at one place, and what is wrong with it; all formats read into them.

A format is a chain of iterators over rows, so that the first ten records of a large file are had at once. A row that
can't be used becomes a `Broken` and reading goes on: whoever asked decides whether that is an error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Generic, TypeVar

from raison.core.errors import InputError
from raison.core.records import Example

__all__ = [
    "UNEXPECTED",
    "Broken",
    "Row",
    "Rows",
    "broken_row",
    "filter_rows",
    "interleave_rows",
    "map_rows",
    "rows_with_labels_in_turn",
]

T = TypeVar("T")
V = TypeVar("V", covariant=True)
U = TypeVar("U")

# what reading a value of the wrong kind, depth or size may end in
UNEXPECTED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


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

    def with_value(self, value: U) -> Row[U]:
        """The same place with another value."""
        return Row(self.file, self.line, value, self.mended)

    def broken(self, reason: str) -> Broken:
        """The same place as a broken record."""
        return Broken(self.file, self.line, reason)

    def broken_by(self, error: InputError) -> Broken:
        """The same place as a broken record, for the reason that an error gives."""
        return broken_row(self.file, self.line, error)


Rows = Iterator["Row[T] | Broken"]


def broken_row(file: str, line: int, error: InputError) -> Broken:
    """The broken record of an error about it."""
    return Broken(file, line, str(error).rstrip("."))


def map_rows(rows: Iterable[Row[T] | Broken], convert: Callable[[Row[T]], U]) -> Rows[U]:
    """Every row with its value converted; what can't be converted is broken."""
    for row in rows:
        if isinstance(row, Broken):
            yield row
            continue

        try:
            value = convert(row)
        except InputError as error:
            yield row.broken_by(error)
        except UNEXPECTED as error:  # whatever a file may hold, it is this record that is wrong
            kind = type(error).__name__
            why = str(error)[:80]
            yield row.broken(f"it can't be read ({kind}: {why})")
        else:
            yield row.with_value(value)


def filter_rows(rows: Iterable[Row[T] | Broken], wanted: Callable[[T], bool]) -> Rows[T]:
    """The rows whose value is wanted, and all that are broken."""
    for row in rows:
        if isinstance(row, Broken) or wanted(row.value):
            yield row


def rows_with_labels_in_turn(
    rows: Iterable[Row[Example] | Broken], labels: tuple[str, ...]
) -> Rows[Example]:
    """The examples with their labels in turn, as long as they last.

    Many files hold all of one class before the other; the first hundred records of such a file would be of one class.
    """
    if not labels:
        yield from rows
        return

    waiting: dict[object, deque[Row[Example]]] = {label: deque() for label in labels}
    turns = cycle(waiting.values())
    next_class = next(turns)

    for row in rows:
        if isinstance(row, Broken) or row.value.label not in waiting:
            yield row
            continue

        of_class = waiting[row.value.label]
        of_class.append(row)
        while next_class:
            yield next_class.popleft()
            next_class = next(turns)

    # some class has ended before the others
    while any(waiting.values()):
        if next_class:
            yield next_class.popleft()
        next_class = next(turns)


def interleave_rows(*streams: Rows[T]) -> Rows[T]:
    """One row of each stream in turn, as long as they last."""
    waiting = deque(streams)
    while waiting:
        stream = waiting.popleft()
        for row in stream:
            yield row
            waiting.append(stream)
            break
