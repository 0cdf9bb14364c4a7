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
    meaning = difference.meaning()
    yield title.append(style.dot + meaning, "dim")

    first_gives_more = difference.strongest(MARKED, side=1)
    second_gives_more = difference.strongest(MARKED, side=-1)
    marked = frozenset(first_gives_more + second_gives_more)
    passages = text_passages(difference.explanation)
    texts = []
    for passage in passages:
        text = style.difference_text(passage, difference, marked)
        texts.append(text)
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
        for_first = style.tint(1.0, DIFFERENCE_HUES)
        for_second = style.tint(-1.0, DIFFERENCE_HUES)
        green = for_first + Style(underline=True)
        red = for_second + Style(underline=False)
        samples = [(" green, underlined ", green), (" red ", red)]

    text = Text(overflow="fold")
    methods = (difference.first, difference.second)
    for name, sample in zip(methods, samples, strict=True):
        text.append(*sample)
        text.append(f" {name} gives more   ", "dim")
    return text


def terminal_difference_table(
    difference: MethodDifference, units: Sequence[int], style: TerminalStyle, width: int
) -> Table:
    """The largest differences with the scores behind them; where room is scarce, the differences alone."""
    names = short_names_of_units(difference.explanation, units, style)
    names_width = widest_line([*names, CORNER])
    room_for_titles = width - names_width - LONGEST_BAR - 2 * GAP
    titles = [difference.first, difference.second, "difference"]
    titles = fold_column_titles(titles, room_for_titles)
    columns = [difference.one, difference.other, difference.values]

    columns_width = 0
    for title in titles:
        columns_width += difference_column_width(title) + GAP
    room = width - names_width - columns_width - GAP
    if room < SHORTEST_BAR:  # the difference alone matters most
        titles = titles[-1:]
        columns = columns[-1:]
        title_width = len(titles[0])
        room = width - names_width - title_width - 2 * GAP
    bar_width = 0
    if room >= SHORTEST_BAR:
        bar_width = min(LONGEST_BAR, room)

    table = bare_terminal_table(CORNER, *titles)
    if bar_width:
        table.add_column("", no_wrap=True)
    values = difference.values
    sizes = np.abs(values)
    largest = sizes.max()
    for unit, name in zip(units, names, strict=True):
        cells: list[Text | str] = [Text(name)]
        for column in columns:
            score = column[unit]
            cells.append(f"{score:+.3f}")
        if bar_width:
            weight = float(values[unit] / largest)
            bar = style.bar(weight, bar_width, DIFFERENCE_HUES)
            cells.append(bar)
        table.add_row(*cells)
    return table


def short_names_of_units(
    explanation: Explanation, units: Sequence[int], style: TerminalStyle
) -> list[str]:
    """The names of some units, as long as a table has room for."""
    all_names = explanation.units.names
    names = []
    for unit in units:
        name = short_name(all_names[unit], LONGEST_NAME, style.dots)
        names.append(name)
    return names


def difference_column_width(title: str) -> int:
    """The cells of a column of numbers under a title of one or more lines."""
    lines = title.split("\n")
    return widest_line([*lines, "+0.000"])


# -- scores side by side ------------------------------------------------------------------------------------


def terminal_methods_tables(
    explanations: Sequence[Explanation], style: TerminalStyle, width: int
) -> Iterator[RenderableType]:
    """Scores of explanations that share their units; the units that matter most to all methods, in reading order.

    As many methods stand beside each other as `width` has room for; the others follow below.
    """
    first = explanations[0]
    units = units_strongest_for_all_methods(explanations)
    rows = short_names_of_units(first, units, style)
    shown = len(units)
    count = len(first.units)
    corner = "unit"
    if shown < count:
        corner = f"strongest {shown} of {count}"
    names_width = widest_line([corner, *rows])
    room = width - names_width - GAP

    columns = []
    for explanation in explanations:
        column = terminal_column_of_scores(explanation, units, style)
        columns.append(column)
    titles = method_titles(explanations)
    titles = fold_column_titles(titles, room)
    widths = []
    for title, column in zip(titles, columns, strict=True):
        lines = title.split("\n")
        lines += [cell.plain for cell in column]
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
    sizes = np.abs(np.stack(weights))  # [methods u]
    importance = sizes.mean(0)
    strongest_first = np.argsort(-importance, kind="stable")
    strongest = strongest_first[:MOST_UNITS]
    return sorted(strongest.tolist())


def terminal_column_of_scores(
    explanation: Explanation, units: Sequence[int], style: TerminalStyle
) -> list[Text]:
    """What one method says about each unit: its score, starred where it was selected, or only whether it was."""
    selected = explanation.selected
    if selected is None:
        selected = np.zeros(len(explanation.units), bool)
    cells = []
    if is_unproved_selection(explanation):
        for unit in units:
            word = "selected" if selected[unit] else ""
            cells.append(Text(word))
        return cells

    scores = explanation.scores
    weights = relative_weights(scores)
    largest = float(np.abs(scores).max())
    for unit in units:
        score = signed_score(float(scores[unit]), largest)
        tint = style.tint(float(weights[unit]))
        star = "*" if selected[unit] else ""
        tinted_score = (f" {score}", tint)
        cell = Text.assemble(star, tinted_score)
        cells.append(cell)
    return cells
