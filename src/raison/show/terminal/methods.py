"""Where one method gives more than another, in the terminal: the text in green and red, and the largest differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from raison.core.records import Explanation
from raison.show import colour_scale
from raison.show.agreement_sentences import method_titles
from raison.show.method_difference import NO_DIFFERENCE, MethodDifference
from raison.show.terminal.columns import (
    GAP,
    bare_terminal_table,
    columns_side_by_side,
    fold_column_titles,
    terminal_passage_grid,
    widest_line,
)
from raison.show.terminal.style import TerminalStyle
from raison.show.text_formats import short_name, signed_score
from raison.show.text_pieces import is_unproved_selection, text_passages

__all__ = ["LONGEST_NAME", "terminal_difference", "terminal_methods_tables"]

MOST_DIFFERENCES = 8  # in the table
MARKED = 5  # units that carry a sign on each side where there are no colours
LONGEST_BAR, SHORTEST_BAR = 12, 4  # cells of the longest bar, and of one that is worth its room
CORNER = "largest"


def terminal_difference(
    difference: MethodDifference, style: TerminalStyle, width: int
) -> Iterator[RenderableType]:
    """Which two methods, the text in green and red, what the colours mean, and the largest differences."""
    title = Text.assemble(
        ("difference ", "dim"),
        (f"{difference.first} {style.minus} {difference.second}", "bold"),
        overflow="fold",
    )
    yield title.append(style.dot + difference.meaning(), "dim")

    marked = frozenset(difference.strongest(MARKED, side=1) + difference.strongest(MARKED, side=-1))
    passages = text_passages(difference.explanation)
    yield terminal_passage_grid(
        passages, [style.difference_text(passage, difference, marked) for passage in passages]
    )
    yield Text(" ")
    yield terminal_difference_key(difference, style)

    strongest = difference.strongest(MOST_DIFFERENCES)
    if not strongest:
        yield Text(NO_DIFFERENCE, "dim italic")
        return
    yield Text(" ")
    yield terminal_difference_table(difference, strongest, style, width)


def terminal_difference_key(difference: MethodDifference, style: TerminalStyle) -> Text:
    """What green and red, or the signs, stand for."""
    text = Text(overflow="fold")
    if style.coloured:
        green = style.tint(1.0, colour_scale.DIFFERENCES) + Style(underline=True)
        red = style.tint(-1.0, colour_scale.DIFFERENCES) + Style(underline=False)
        samples = [(" green, underlined ", green), (" red ", red)]
    else:
        samples = [("[+]", Style.null()), ("[-]", Style.null())]
    for name, sample in zip((difference.first, difference.second), samples, strict=True):
        text.append(*sample)
        text.append(f" {name} gives more   ", "dim")
    return text


def terminal_difference_table(
    difference: MethodDifference, units: Sequence[int], style: TerminalStyle, width: int
) -> Table:
    """The largest differences with the scores behind them; where room is scarce, the differences alone."""
    names = [
        short_name(difference.explanation.units.names[unit], LONGEST_NAME, style.dots)
        for unit in units
    ]
    names_width = widest_line([*names, CORNER])
    room_for_titles = width - names_width - LONGEST_BAR - 2 * GAP
    titles = fold_column_titles(
        [difference.first, difference.second, "difference"], room_for_titles
    )
    columns = [difference.one, difference.other, difference.values]

    room = width - names_width - sum(difference_column_width(title) + GAP for title in titles) - GAP
    if room < SHORTEST_BAR:  # the difference alone matters most
        titles, columns = titles[-1:], columns[-1:]
        room = width - names_width - len(titles[0]) - 2 * GAP
    bar_width = min(LONGEST_BAR, room) if room >= SHORTEST_BAR else 0

    table = bare_terminal_table(CORNER, *titles)
    if bar_width:
        table.add_column("", no_wrap=True)
    largest = np.abs(difference.values).max()
    for unit, name in zip(units, names, strict=True):
        cells: list[Text | str] = [Text(name), *(f"{column[unit]:+.3f}" for column in columns)]
        if bar_width:
            cells.append(
                style.bar(
                    float(difference.values[unit] / largest), bar_width, colour_scale.DIFFERENCES
                )
            )
        table.add_row(*cells)
    return table


def difference_column_width(title: str) -> int:
    """The cells of a column of numbers under a title of one or more lines."""
    return widest_line([*title.split("\n"), "+0.000"])


MOST_UNITS = 12  # shown
LONGEST_NAME = 24  # cells of a unit's name


def terminal_methods_tables(
    explanations: Sequence[Explanation], style: TerminalStyle, width: int
) -> Iterator[RenderableType]:
    """Scores of explanations that share their units; the units that matter most to all methods, in reading order.

    As many methods stand beside each other as `width` has room for; the others follow below.
    """
    names = explanations[0].units.names
    units = units_strongest_for_all_methods(explanations)
    rows = [short_name(names[unit], LONGEST_NAME, style.dots) for unit in units]
    corner = "unit" if len(units) == len(names) else f"strongest {len(units)} of {len(names)}"
    room = width - widest_line([corner, *rows]) - GAP

    columns = [terminal_column_of_scores(explanation, units, style) for explanation in explanations]
    titles = fold_column_titles(method_titles(explanations), room)
    widths = []
    for title, column in zip(titles, columns, strict=True):
        widths.append(widest_line([*title.split("\n"), *(cell.plain for cell in column)]))

    for group in columns_side_by_side(widths, room):
        table = bare_terminal_table(corner, *(titles[place] for place in group))
        for row, name in enumerate(rows):
            table.add_row(Text(name), *(columns[place][row] for place in group))
        yield table


def units_strongest_for_all_methods(explanations: Sequence[Explanation]) -> list[int]:
    """The units of the highest mean |weight| over all methods, in reading order."""
    weights = np.stack(
        [colour_scale.relative_weights(explanation.scores) for explanation in explanations]
    )  # [methods u]
    importance = np.abs(weights).mean(0)
    strongest = np.argsort(-importance, kind="stable")[:MOST_UNITS]
    return sorted(strongest.tolist())


def terminal_column_of_scores(
    explanation: Explanation, units: Sequence[int], style: TerminalStyle
) -> list[Text]:
    """What one method says about each unit: its score, starred where it was selected, or only whether it was."""
    selected = (
        explanation.selected
        if explanation.selected is not None
        else np.zeros(len(explanation.units), bool)
    )
    if is_unproved_selection(explanation):
        return [Text("selected" if selected[unit] else "") for unit in units]

    weights = colour_scale.relative_weights(explanation.scores)
    largest = float(np.abs(explanation.scores).max())
    cells = []
    for unit in units:
        score = signed_score(float(explanation.scores[unit]), largest)
        star = "*" if selected[unit] else ""
        cells.append(Text.assemble(star, (f" {score}", style.tint(float(weights[unit])))))
    return cells
