"""Tables and columns in the terminal: bare tables, grids of passages, titles that fold, columns side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from raison.show.text_formats import clean_text
from raison.show.text_pieces import TextPassage

__all__ = [
    "GAP",
    "bare_terminal_table",
    "columns_side_by_side",
    "empty_terminal_table",
    "fold_column_title",
    "fold_column_titles",
    "terminal_passage_grid",
    "widest_line",
]

GAP = 2  # cells between columns
TITLE = 10  # cells of a column's title if it can be folded


def empty_terminal_table() -> Table:
    """A table without lines and columns."""
    return Table(box=None, padding=(0, GAP, 0, 0), header_style="dim", pad_edge=False)


def bare_terminal_table(*titles: str) -> Table:
    """A table without lines; the first column holds names, the others hold numbers."""
    table = empty_terminal_table()
    for place, title in enumerate(titles):
        table.add_column(
            title, justify="right" if place else "left", no_wrap=True, vertical="bottom"
        )
    return table


def terminal_passage_grid(passages: Sequence[TextPassage], texts: Sequence[Text]) -> Table:
    """The texts of passages below each other; the names stand beside them where there are several."""
    grid = Table.grid(padding=(0, GAP))
    if len(passages) > 1:
        grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for passage, text in zip(passages, texts, strict=True):
        if len(passages) > 1:
            grid.add_row(clean_text(passage.name), text)
        else:
            grid.add_row(text)
    return grid


def widest_line(lines: Sequence[str]) -> int:
    """The cells of the longest line."""
    return max(map(cell_len, lines))


def fold_column_titles(titles: Sequence[str], room: int) -> list[str]:
    """Titles of columns, in one line each where there is room for that."""
    needed = sum(map(len, titles)) + GAP * len(titles)
    if needed <= room:
        return list(titles)
    return [fold_column_title(title) for title in titles]


def fold_column_title(title: str) -> str:
    """A long title in lines, broken behind its signs."""
    lines = [""]
    for part in re.findall(r"[^_(,=\s]*[_(,=\s]*", title):
        longer = lines[-1] + part.rstrip()
        if lines[-1] and len(longer) > TITLE:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)


def columns_side_by_side(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Columns that stand side by side in `room` cells, at least one; the others follow in groups of their own."""
    group: list[int] = []
    used = 0
    for place, width in enumerate(widths):
        if group and used + width > room:
            yield group
            group, used = [], 0
        group.append(place)
        used += width + GAP
    yield group
