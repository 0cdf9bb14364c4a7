"""Where one method gives more than another, in the terminal: the text in green and red, and the largest differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from raison.show import scale
from raison.show.difference import NO_DIFFERENCE, Difference
from raison.show.spans import flow
from raison.show.terminal.columns import GAP, bare_table, fold_titles, passage_grid, widest
from raison.show.terminal.methods_table import LONGEST_NAME
from raison.show.terminal.style import TerminalStyle
from raison.show.wording import short

__all__ = ["difference_report"]

MOST_DIFFERENCES = 8  # in the table
MARKED = 5  # units that carry a sign on each side where there are no colours
LONGEST_BAR, SHORTEST_BAR = 12, 4  # cells of the longest bar, and of one that is worth its room
CORNER = "largest"


def difference_report(
    difference: Difference, style: TerminalStyle, width: int
) -> Iterator[RenderableType]:
    """Which two methods, the text in green and red, what the colours mean, and the largest differences."""
    title = Text.assemble(
        ("difference ", "dim"),
        (f"{difference.first} {style.minus} {difference.second}", "bold"),
        overflow="fold",
    )
    yield title.append(style.dot + difference.meaning(), "dim")

    marked = frozenset(difference.strongest(MARKED, side=1) + difference.strongest(MARKED, side=-1))
    passages = flow(difference.explanation)
    yield passage_grid(
        passages, [style.difference_text(passage, difference, marked) for passage in passages]
    )
    yield Text(" ")
    yield colour_key(difference, style)

    strongest = difference.strongest(MOST_DIFFERENCES)
    if not strongest:
        yield Text(NO_DIFFERENCE, "dim italic")
        return
    yield Text(" ")
    yield table_of_differences(difference, strongest, style, width)


def colour_key(difference: Difference, style: TerminalStyle) -> Text:
    """What green and red, or the signs, stand for."""
    text = Text(overflow="fold")
    if style.coloured:
        green = style.tint(1.0, scale.DIFFERENCES) + Style(underline=True)
        red = style.tint(-1.0, scale.DIFFERENCES) + Style(underline=False)
        samples = [(" green, underlined ", green), (" red ", red)]
    else:
        samples = [("[+]", Style.null()), ("[-]", Style.null())]
    for name, sample in zip((difference.first, difference.second), samples, strict=True):
        text.append(*sample)
        text.append(f" {name} gives more   ", "dim")
    return text


def table_of_differences(
    difference: Difference, units: Sequence[int], style: TerminalStyle, width: int
) -> Table:
    """The largest differences with the scores behind them; where room is scarce, the differences alone."""
    names = [
        short(difference.explanation.units.names[unit], LONGEST_NAME, style.dots) for unit in units
    ]
    names_width = widest([*names, CORNER])
    room_for_titles = width - names_width - LONGEST_BAR - 2 * GAP
    titles = fold_titles([difference.first, difference.second, "difference"], room_for_titles)
    columns = [difference.one, difference.other, difference.values]

    room = width - names_width - sum(column_width(title) + GAP for title in titles) - GAP
    if room < SHORTEST_BAR:  # the difference alone matters most
        titles, columns = titles[-1:], columns[-1:]
        room = width - names_width - len(titles[0]) - 2 * GAP
    bar_width = min(LONGEST_BAR, room) if room >= SHORTEST_BAR else 0

    table = bare_table(CORNER, *titles)
    if bar_width:
        table.add_column("", no_wrap=True)
    largest = np.abs(difference.values).max()
    for unit, name in zip(units, names, strict=True):
        cells: list[Text | str] = [Text(name), *(f"{column[unit]:+.3f}" for column in columns)]
        if bar_width:
            cells.append(
                style.bar(float(difference.values[unit] / largest), bar_width, scale.DIFFERENCES)
            )
        table.add_row(*cells)
    return table


def column_width(title: str) -> int:
    """The cells of a column of numbers under a title of one or more lines."""
    return widest([*title.split("\n"), "+0.000"])
