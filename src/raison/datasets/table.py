"""Tables: CSV with quotes, or plain columns between tabs."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path

from raison.core.errors import InputError
from raison.datasets.rows import Broken, Row, Rows, each, lines

__all__ = ["columns", "named", "numbered", "quoted", "unwrapped"]

UNKNOWN = "\ufffd"
LONGEST = 2**24  # characters of one cell; Python's own limit is too short for books


def columns(path: Path, count: int, delimiter: str = "\t", *, other: str = "") -> Rows[list[str]]:
    """Rows of `count` columns, one in each line, without quotes; what is left of the last column belongs to it."""

    def parted(row: Row[str]) -> list[str]:
        cells = row.value.split(delimiter, count - 1)
        if len(cells) != count or any(not cell for cell in cells):
            raise InputError(f"the line has {sum(map(bool, cells))} of {count} columns.")
        return cells

    return each(lines(path, other=other), parted)


def quoted(path: Path, count: int | None = None, delimiter: str = ",", *, other: str = "") -> Rows[list[str]]:
    """Rows of cells that may be quoted and go over several lines; `count` None: as many as the first row has."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
    bad: list[Broken] = []  # lines that could not be decoded, of the row that is read at the moment
    mended: list[str] = []
    seen = [0]

    def texts() -> Iterator[str]:
        # a line that is no UTF-8 is broken, but it may hold the end of a quote
        for row in lines(path, other=other or "replace"):
            seen[0] = row.line
            if isinstance(row, Broken):
                bad.append(row)
                continue
            if row.mended and not other:
                bad.append(Broken(row.file, row.line, f"character {row.value.index(UNKNOWN) + 1} is not UTF-8"))
            mended.extend(row.mended)
            yield row.value + "\n"

    reader = csv.reader(texts(), delimiter=delimiter, strict=True)
    while True:
        start = seen[0] + 1
        bad.clear()
        mended.clear()
        try:
            cells = next(reader)
        except StopIteration:
            yield from bad  # a file that was cut between two rows
            return
        except csv.Error as error:
            yield bad[0] if bad else Broken(str(path), start, f"the quotes are wrong ({error})")
            continue
        if bad:
            yield bad[0]
        elif cells:
            count = count or len(cells)
            if len(cells) == count:
                yield Row(str(path), start, cells, tuple(dict.fromkeys(mended)))
            else:
                yield Broken(str(path), start, f"the row has {len(cells)} columns, not {count}")


def named(path: Path, delimiter: str = ",", *, other: str = "") -> Rows[dict[str, str]]:
    """Rows of a table whose first row names the columns; columns without a name at its start are an index.

    pandas writes an index in this way, and it is left out.
    """
    rows = quoted(path, None, delimiter, other=other)
    head = next(rows, None)
    if isinstance(head, Broken):
        yield head
        return
    if head is None:
        raise InputError(f"{str(path)!r} is empty: it needs a first line with the names of the columns.")
    first, names = without_index(head.value)
    if len(set(names)) < len(names) or not all(names):
        yield Broken(head.file, head.line, f"the names of the columns are empty or stand twice: {', '.join(names)}")
        return
    yield from each(rows, lambda row: dict(zip(names, row.value[first:], strict=True)))


def numbered(path: Path, wanted: Collection[int], delimiter: str = ",", *, other: str = "") -> Rows[dict[int, str]]:
    """Rows of a table whose columns are known by number, from 0; `wanted` are those that somebody asks for.

    A first row of numbers, as pandas writes it for columns without names, is no record: it says which column has which
    number.
    """
    rows = quoted(path, None, delimiter, other=other)
    head = next(rows, None)
    if isinstance(head, Row):
        first, names = without_index(head.value)
        numbers = [int(name) for name in names if name.isdecimal() and len(name) < 10]
        distinct = 0 < len(numbers) == len(names) == len(set(numbers))
        if distinct and (first > 0 or set(wanted) <= set(numbers)):
            yield from each(rows, lambda row: dict(zip(numbers, row.value[first:], strict=True)))
            return
    start = [] if head is None else [head]
    yield from each(chain(start, rows), lambda row: dict(enumerate(row.value)))


def without_index(head: Sequence[str]) -> tuple[int, list[str]]:
    """How many columns without a name a first row begins with, and the names of the others."""
    names = [name.strip() for name in head]
    first = next((number for number, name in enumerate(names) if name), 0)
    return first, names[first:]


def unwrapped(cell: str) -> str:
    """A cell without the quotes around it, if it has them as CSV writes them."""
    inside = cell[1:-1]
    if len(cell) > 1 and cell[0] == cell[-1] == '"' and '"' not in inside.replace('""', ""):
        return inside.replace('""', '"')
    return cell
