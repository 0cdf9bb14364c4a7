"""Plain text (prose): lines, passages between blank lines, or the whole file."""

from __future__ import annotations

from pathlib import Path

from raison.core.parameters import check_choice
from raison.core.records import Example
from raison.datasets.dataset_rows import Broken, Row, Rows, filter_rows, map_rows
from raison.datasets.text_files import read_lines

__all__ = ["LEVELS", "read_plain_text"]

LEVELS = ("line", "passage", "file")


def read_plain_text(path: Path, level: str) -> Rows[Example]:
    """Examples of a text file; the id is the line at which one begins."""
    check_choice("level", level, LEVELS)
    if level == "line":
        texts = filter_rows(read_lines(path), lambda line: bool(line.strip()))
    elif level == "passage":
        texts = read_passages(path)
    else:
        texts = read_whole_file(path)
    return map_rows(texts, lambda row: Example(row.value, id=str(row.line)))


def read_passages(path: Path) -> Rows[str]:
    """Blocks of lines between blank lines."""
    passage: list[str] = []
    first = 1
    for row in read_lines(path):
        if isinstance(row, Broken):
            yield row
        elif row.value.strip():
            first = first if passage else row.line
            passage.append(row.value)
        elif passage:
            yield Row(str(path), first, "\n".join(passage))
            passage = []

    if passage:
        yield Row(str(path), first, "\n".join(passage))


def read_whole_file(path: Path) -> Rows[str]:
    """The file as one text, letter by letter."""
    lines: list[str] = []
    first = 1
    for row in read_lines(path):
        if isinstance(row, Broken):
            yield row
            continue
        first = first if lines else row.line
        lines.append(row.value)

    if lines:
        yield Row(str(path), first, "\n".join(lines) + "\n")
