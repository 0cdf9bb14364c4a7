"""Plain text: lines, passages between blank lines, or the whole file."""

from __future__ import annotations

from pathlib import Path

from raison.core.records import Example
from raison.core.spec import one_of
from raison.datasets.rows import Broken, Row, Rows, each, lines

__all__ = ["LEVELS", "prose"]

LEVELS = ("line", "passage", "file")


def prose(path: Path, level: str) -> Rows[Example]:
    """Examples of a text file; the id is the line at which one begins."""
    one_of("level", level, LEVELS)
    return each(pieces(path, level), lambda row: Example(row.value, id=str(row.line)))


def pieces(path: Path, level: str) -> Rows[str]:
    """Lines or blocks of lines with something in them; the file as a whole is returned letter by letter."""
    held: list[str] = []
    first = 1
    for row in lines(path):
        if isinstance(row, Broken):
            yield row
            continue
        empty = not row.value.strip()
        if level == "line" and not empty:
            yield row
        elif level == "passage" and empty and held:
            yield Row(str(path), first, "\n".join(held))
            held = []
        elif level == "file" or (level == "passage" and not empty):
            first = first if held else row.line
            held.append(row.value)
    if held:
        yield Row(str(path), first, "\n".join(held) + ("\n" if level == "file" else ""))
