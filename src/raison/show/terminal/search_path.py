"""The search path in the terminal: a row for each step, with as many columns as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from raison.core.records import Explanation
from raison.show.search_path_steps import (
    PathStep,
    path_excerpt,
    path_measure,
    path_runners_up_title,
    search_path,
)
from raison.show.terminal.columns import GAP, empty_terminal_table
from raison.show.terminal.style import TerminalStyle
from raison.show.text_formats import count_with_noun

__all__ = ["terminal_search_path"]

LONGEST_BAR, SHORTER_BAR = 12, 8  # cells: in wide terminals, and in others
WIDE = 90  # cells of a terminal from which bars are long
SHORT, LONG = 16, 36  # cells that a change gets before other columns do, and at most
COUNT = 4  # cells of a step's number, and of its size
SPARE = 4  # cells that stay free
MOST_RUNNERS_UP = 2  # named in a step


@dataclass(frozen=True)
class PathColumnWidths:
    """Cells of each column, 0 where it is left out: settled here, since bars that a table shortens would tell lies."""

    change: int
    count: int  # of the step's number, and of its size
    figure: int
    bar: int
    tick: int
    runners_up: int

    @classmethod
    def within(
        cls,
        width: int,
        *,
        changes: Sequence[str],
        figure: int,
        tick: int,
        has_bars: bool,
        has_runners_up: bool,
    ) -> PathColumnWidths:
        """What has room in `width` cells: first the change, then step and size, bars, and who was not chosen."""
        longest = max(map(cell_len, changes))
        least = min(longest, SHORT)
        room = width - figure - tick - 2 * GAP - SPARE

        count = 0
        if room >= least + 2 * (COUNT + GAP):
            count = COUNT
            room -= 2 * (COUNT + GAP)

        bar = 0
        longest_bar = LONGEST_BAR if width >= WIDE else SHORTER_BAR
        if has_bars and room >= least + longest_bar + GAP:
            bar = longest_bar
            room -= longest_bar + GAP

        change = max(4, min(longest, LONG, room))
        runners_up = room - change - GAP
        if not has_runners_up or runners_up < SHORT:
            runners_up = 0
        return cls(
            change=change, count=count, figure=figure, bar=bar, tick=tick, runners_up=runners_up
        )


def terminal_search_path(
    explanation: Explanation, style: TerminalStyle, width: int
) -> Table | None:
    """The path of the search; None where no steps were recorded."""
    all_steps = search_path(explanation, style.dots)
    if not all_steps:
        return None
    rows = path_excerpt(all_steps)
    changes = [change_of_path_row(row, style) for row in rows]
    title = path_measure(explanation)
    columns = PathColumnWidths.within(
        width,
        changes=changes,
        figure=max(len(title), *(len(step.figure) for step in all_steps)),
        tick=len(path_tick(style)),
        has_bars=any(step.weight is not None for step in all_steps),
        has_runners_up=any(step.rivals for step in all_steps),
    )

    table = empty_path_table(columns, title, path_runners_up_title(explanation))
    for row, change in zip(rows, changes, strict=True):
        shown = cut_text_to_cells(change, columns.change, style)
        if not isinstance(row, int):
            is_whole_context = row.number is None
            cells = cells_of_path_step(row, shown, columns, style)
            table.add_row(*cells, style="dim" if is_whole_context else "")
        elif columns.count:  # so many steps are left out
            table.add_row("", shown, style="dim")
        else:
            table.add_row(shown, style="dim")
    return table


def empty_path_table(columns: PathColumnWidths, title: str, title_of_runners_up: str) -> Table:
    table = empty_terminal_table()
    if columns.count:
        table.add_column("step", justify="right", style="dim", width=columns.count)
    table.add_column("change", width=columns.change, no_wrap=True)
    if columns.count:
        table.add_column("size", justify="right", width=columns.count)
    table.add_column(title, justify="right", width=columns.figure)
    if columns.bar:
        table.add_column("", width=columns.bar, no_wrap=True)
    table.add_column("", no_wrap=True, width=columns.tick)
    if columns.runners_up:
        table.add_column(title_of_runners_up, width=columns.runners_up, no_wrap=True, style="dim")
    return table


def cells_of_path_step(
    step: PathStep, change: Text, columns: PathColumnWidths, style: TerminalStyle
) -> list[RenderableType]:
    """One row: only the columns that have room."""
    cells: list[RenderableType] = [change, step.figure]
    if columns.count:
        number = "" if step.number is None else str(step.number)
        cells = [number, change, str(step.size), step.figure]
    if columns.bar:
        cells.append("" if step.weight is None else style.bar(step.weight, columns.bar))
    tick = path_tick(style) if step.enough else ""
    cells.append(Text(tick, "bold"))
    if columns.runners_up:
        names = runners_up_within_width(step, columns.runners_up)
        cells.append(cut_text_to_cells(names, columns.runners_up, style))
    return cells


def change_of_path_row(row: PathStep | int, style: TerminalStyle) -> str:
    """What a step changed, or how many steps are left out."""
    if isinstance(row, int):
        return f"{style.either('⋮', ':')} {count_with_noun(row, 'step')} more"
    return row.change(style.minus)


def path_tick(style: TerminalStyle) -> str:
    return style.either("✓", "yes")


def runners_up_within_width(step: PathStep, width: int) -> str:
    """As many runners-up of a step as `width` cells hold, at least one."""
    names = [f"{name} {figure}" for name, figure in step.rivals[:MOST_RUNNERS_UP]]
    while len(names) > 1 and cell_len(", ".join(names)) > width:
        names.pop()
    return ", ".join(names)


def cut_text_to_cells(line: str, width: int, style: TerminalStyle) -> Text:
    """A line cut to a width in terminal cells, with dots that the stream can carry."""
    text = Text(line)
    if text.cell_len > width:
        text.truncate(max(0, width - len(style.dots)))
        text = Text(text.plain.rstrip() + style.dots[:width])
    return text
