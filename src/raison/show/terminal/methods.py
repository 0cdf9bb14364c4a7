"""Several methods in the terminal: tables of their scores side by side, and the difference of two of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from raison.core.records import Explanation
from raison.show.agreement_sentences import method_titles
from raison.show.colour_scale import DIFFERENCE_HUES, relative_weights
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

__all__ = ["terminal_difference", "terminal_methods_tables"]

MOST_UNITS = 12  # in a table of scores
MOST_DIFFERENCES = 8  # in the table of differences
LONGEST_NAME = 24  # cells of a unit's name
MARKED = 5  # units that carry a sign on each side where there are no colours
LONGEST_BAR, SHORTEST_BAR = 12, 4  # cells of the longest bar, and of one that is worth its room
CORNER = "largest"


def terminal_difference(
    difference: MethodDifference, style: TerminalStyle, width: int
) -> Iterator[RenderableType]:
    """Which two methods, the text in green and red, what the colours mean, and the largest differences."""
    methods = f"{difference.first} {style.minus} {difference.second}"
    title = Text.assemble(("difference ", "dim"), (methods, "bold"), overflow="fold")
    yield title.append(style.dot + difference.meaning(), "dim")

    first_gives_more = difference.strongest(MARKED, side=1)
    second_gives_more = difference.strongest(MARKED, side=-1)
    marked = frozenset(first_gives_more + second_gives_more)
    passages = text_passages(difference.explanation)
    texts = [style.difference_text(passage, difference, marked) for passage in passages]
    yield terminal_passage_grid(passages, texts)
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
    samples = [("[+]", Style.null()), ("[-]", Style.null())]
    if style.coloured:
        green = style.tint(1.0, DIFFERENCE_HUES) + Style(underline=True)
        red = style.tint(-1.0, DIFFERENCE_HUES) + Style(underline=False)
        samples = [(" green, underlined ", green), (" red ", red)]

    text = Text(overflow="fold")
    for name, sample in zip((difference.first, difference.second), samples, strict=True):
        text.append(*sample)
        text.append(f" {name} gives more   ", "dim")
    return text


def terminal_difference_table(
    difference: MethodDifference, units: Sequence[int], style: TerminalStyle, width: int
) -> Table:
    """The largest differences with the scores behind them; where room is scarce, the differences alone."""
    unit_names = difference.explanation.units.names
    names = [short_name(unit_names[unit], LONGEST_NAME, style.dots) for unit in units]
    names_width = widest_line([*names, CORNER])
    room_for_titles = width - names_width - LONGEST_BAR - 2 * GAP
    titles = [difference.first, difference.second, "difference"]
    titles = fold_column_titles(titles, room_for_titles)
    columns = [difference.one, difference.other, difference.values]

    columns_width = sum(difference_column_width(title) + GAP for title in titles)
    room = width - names_width - columns_width - GAP
    if room < SHORTEST_BAR:  # the difference alone matters most
        titles = titles[-1:]
        columns = columns[-1:]
        room = width - names_width - len(titles[0]) - 2 * GAP
    bar_width = 0
    if room >= SHORTEST_BAR:
        bar_width = min(LONGEST_BAR, room)

    table = bare_terminal_table(CORNER, *titles)
    if bar_width:
        table.add_column("", no_wrap=True)
    values = difference.values
    largest = np.abs(values).max()
    for unit, name in zip(units, names, strict=True):
        cells: list[Text | str] = [Text(name)]
        for column in columns:
            cells.append(f"{column[unit]:+.3f}")
        if bar_width:
            weight = float(values[unit] / largest)
            cells.append(style.bar(weight, bar_width, DIFFERENCE_HUES))
        table.add_row(*cells)
    return table


def difference_column_width(title: str) -> int:
    """The cells of a column of numbers under a title of one or more lines."""
    return widest_line([*title.split("\n"), "+0.000"])


# -- scores side by side ------------------------------------------------------------------------------------


def terminal_methods_tables(
    explanations: Sequence[Explanation], style: TerminalStyle, width: int
) -> Iterator[RenderableType]:
    """Scores of explanations that share their units; the units that matter most to all methods, in reading order.

    As many methods stand beside each other as `width` has room for; the others follow below.
    """
    names = explanations[0].units.names
    units = units_strongest_for_all_methods(explanations)
    rows = [short_name(names[unit], LONGEST_NAME, style.dots) for unit in units]
    corner = "unit"
    if len(units) < len(names):
        corner = f"strongest {len(units)} of {len(names)}"
    room = width - widest_line([corner, *rows]) - GAP

    columns = [terminal_column_of_scores(each, units, style) for each in explanations]
    titles = fold_column_titles(method_titles(explanations), room)
    widths = []
    for title, column in zip(titles, columns, strict=True):
        lines = title.split("\n") + [cell.plain for cell in column]
        widths.append(widest_line(lines))

    for group in columns_side_by_side(widths, room):
        titles_of_group = [titles[place] for place in group]
        table = bare_terminal_table(corner, *titles_of_group)
        for row, name in enumerate(rows):
            cells = [columns[place][row] for place in group]
            table.add_row(Text(name), *cells)
        yield table


def units_strongest_for_all_methods(explanations: Sequence[Explanation]) -> list[int]:
    """The units of the highest mean |weight| over all methods, in reading order."""
    weights = [relative_weights(explanation.scores) for explanation in explanations]
    importance = np.abs(np.stack(weights)).mean(0)  # of [methods u]
    strongest = np.argsort(-importance, kind="stable")[:MOST_UNITS]
    return sorted(strongest.tolist())


def terminal_column_of_scores(
    explanation: Explanation, units: Sequence[int], style: TerminalStyle
) -> list[Text]:
    """What one method says about each unit: its score, starred where it was selected, or only whether it was."""
    selected = np.zeros(len(explanation.units), bool)
    if explanation.selected is not None:
        selected = explanation.selected
    if is_unproved_selection(explanation):
        return [Text("selected" if selected[unit] else "") for unit in units]

    weights = relative_weights(explanation.scores)
    largest = float(np.abs(explanation.scores).max())
    cells = []
    for unit in units:
        score = signed_score(float(explanation.scores[unit]), largest)
        tint = style.tint(float(weights[unit]))
        star = "*" if selected[unit] else ""
        cells.append(Text.assemble(star, (f" {score}", tint)))
    return cells
