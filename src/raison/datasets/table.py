"""Tables: CSV with quotes, plain columns between tabs, or Parquet, which pyarrow reads."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path

from raison.core.errors import InputError, MissingExtra
from raison.datasets.dataset_rows import Broken, Row, Rows, map_rows
from raison.datasets.json_files import Json
from raison.datasets.text_files import file_open_error, read_lines

__all__ = [
    "read_csv",
    "read_numbered_table",
    "read_parquet",
    "read_plain_columns",
    "read_table_rows",
    "unquote_csv_cell",
]

UNKNOWN = "\ufffd"
LONGEST = 2**24  # characters of one cell; Python's own limit is too short for books


def read_plain_columns(
    path: Path,
    count: int,
    delimiter: str = "\t",
    *,
    other: str = "",
) -> Rows[list[str]]:
    """Rows of `count` columns, one in each line, without quotes; what is left of the last column belongs to it."""

    def split_line(row: Row[str]) -> list[str]:
        cells = row.value.split(delimiter, count - 1)
        full = len(cells) - cells.count("")
        if full != count:
            raise InputError(f"the line has {full} of {count} columns.")
        return cells

    lines = read_lines(path, other=other)
    return map_rows(lines, split_line)


class CsvLines:
    """The lines of a table for Python's reader, and what was met in those of the row that is read at the moment."""

    def __init__(self, path: Path, other: str):
        self.path = path
        self.other = other
        self.line = 0  # the last that was read
        self.broken: list[Broken] = []
        self.mended: list[str] = []

    def start_row(self) -> None:
        """Forget what was met in the row before."""
        self.broken.clear()
        self.mended.clear()

    def __iter__(self) -> Iterator[str]:
        # a line that is no UTF-8 is broken, but it may hold the end of a quote
        for row in read_lines(self.path, other=self.other or "replace"):
            self.line = row.line
            if isinstance(row, Broken):
                self.broken.append(row)
                continue

            if row.mended and not self.other:
                place = row.value.index(UNKNOWN) + 1
                self.broken.append(row.broken(f"character {place} is not UTF-8"))
            self.mended.extend(row.mended)
            yield row.value + "\n"


def read_csv(
    path: Path,
    count: int | None = None,
    delimiter: str = ",",
    *,
    other: str = "",
) -> Rows[list[str]]:
    """Rows of cells that may be quoted and go over several lines; `count` None: as many as the first row has."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
    lines = CsvLines(path, other)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)

    while True:
        start = lines.line + 1
        lines.start_row()
        try:
            cells = next(reader)
        except StopIteration:
            yield from lines.broken  # a file that was cut between two rows
            return
        except csv.Error as error:
            yield (
                lines.broken[0]
                if lines.broken
                else Broken(str(path), start, f"the quotes are wrong ({error})")
            )
            continue

        if lines.broken:
            yield lines.broken[0]
            continue
        if not cells:
            continue

        count = count or len(cells)
        if len(cells) == count:
            mended = tuple(dict.fromkeys(lines.mended))
            yield Row(str(path), start, cells, mended)
        else:
            yield Broken(str(path), start, f"the row has {len(cells)} columns, not {count}")


def read_table_rows(path: Path, delimiter: str = ",", *, other: str = "") -> Rows[dict[str, str]]:
    """Rows of a table whose first row names the columns; columns without a name at its start are an index.

    pandas writes an index in this way, and it is left out.
    """
    rows = read_csv(path, None, delimiter, other=other)
    head = next(rows, None)
    if isinstance(head, Broken):
        yield head
        return
    if head is None:
        raise InputError(
            f"{str(path)!r} is empty: it needs a first line with the names of the columns."
        )

    first, names = table_head_without_index(head.value)
    twice = len(set(names)) < len(names)
    if twice or not all(names):
        known = ", ".join(names)
        yield head.broken(f"the names of the columns are empty or stand twice: {known}")
        return

    def name_cells(row: Row[list[str]]) -> dict[str, str]:
        cells = row.value[first:]
        return dict(zip(names, cells, strict=True))

    yield from map_rows(rows, name_cells)


def read_numbered_table(
    path: Path,
    wanted: Collection[int],
    delimiter: str = ",",
    *,
    other: str = "",
) -> Rows[dict[int, str]]:
    """Rows of a table whose columns are known by number, from 0; `wanted` are those that somebody asks for.

    A first row of numbers, as pandas writes it for columns without names, is no record: it says which column has which
    number.
    """
    rows = read_csv(path, None, delimiter, other=other)
    head = next(rows, None)
    if head is None:
        return

    first = 0
    numbers: list[int] = []
    if isinstance(head, Row):
        first, names = table_head_without_index(head.value)
        numbers = numbers_of_table_columns(names)

    if numbers and (first > 0 or set(wanted) <= set(numbers)):
        yield from map_rows(rows, lambda row: dict(zip(numbers, row.value[first:], strict=True)))
    else:
        yield from map_rows(chain([head], rows), lambda row: dict(enumerate(row.value)))


def numbers_of_table_columns(names: Sequence[str]) -> list[int]:
    """The numbers that columns are called by; none where a name is no number or stands twice."""
    numbers: list[int] = []
    for name in names:
        if not name.isdecimal() or len(name) >= 10:
            return []
        if int(name) in numbers:
            return []
        numbers.append(int(name))
    return numbers


def table_head_without_index(head: Sequence[str]) -> tuple[int, list[str]]:
    """How many columns without a name a first row begins with, and the names of the others."""
    names = [name.strip() for name in head]
    for first, name in enumerate(names):
        if name:
            return first, names[first:]
    return 0, names


def unquote_csv_cell(cell: str) -> str:
    """A cell without the quotes around it, if it has them as CSV writes them."""
    if len(cell) < 2 or not (cell[0] == cell[-1] == '"'):
        return cell
    inside = cell[1:-1]
    if '"' in inside.replace('""', ""):
        return cell
    return inside.replace('""', '"')


def read_parquet(path: Path) -> Rows[Json]:
    """The rows of a Parquet file; `line` counts them."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingExtra("pyarrow", "data", "Reading Parquet files") from None

    number = 0
    try:
        with ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1024):
                for record in batch.to_pylist():
                    number += 1
                    yield Row(str(path), number, record)
    except ArrowException as error:
        why = str(error).splitlines()[0]
        yield Broken(str(path), number + 1, f"it is not Parquet or damaged here ({why})")
    except OSError as error:
        raise file_open_error(path, error) from None
