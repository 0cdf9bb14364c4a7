"""The strongest units in the terminal: those that speak most for a target and against it, with scores and bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.table import Table
from rich.text import Text

from raison.core.records import Explanation
from raison.show.colour_scale import SILENT_WEIGHT, has_negative_scores, relative_weights
from raison.show.rationale_sentences import MOST_UNIT_NAMES
from raison.show.terminal.columns import empty_terminal_table
from raison.show.terminal.style import TerminalStyle
from raison.show.text_formats import clean_text, count_with_noun, signed_score

__all__ = ["strongest_units_on_side", "terminal_selected_units", "terminal_strongest_units"]

STRONGEST = 5  # units named on each side
LONGEST_NAME = 24  # cells
GAP, LONGEST_BAR = 4, 12  # cells between the sides, and of the longest bar
WIDE = 76  # cells from which for and against stand side by side


def terminal_selected_units(explanation: Explanation, style: TerminalStyle) -> Text:
    """How many units were selected, and in which order they were chosen."""
    selected = np.zeros(0, bool)
    if explanation.selected is not None:
        selected = explanation.selected
    units = count_with_noun(len(selected), explanation.units.level)
    line = Text("rationale ", style="dim")
    line.append(f"{int(selected.sum())} of {units}", "bold")

    order = [] if explanation.order is None else explanation.order.tolist()
    names = [clean_text(explanation.units.names[unit]) for unit in order if selected[unit]]
    if len(names) > MOST_UNIT_NAMES:
        names = [*names[:MOST_UNIT_NAMES], "…"]
    if names:
        line.append(", in the order chosen: ", "dim")
        line.append(style.either(" → ", ", ").join(names))
    return line


def strongest_units_on_side(scores: np.ndarray, side: int) -> list[int]:
    """The units that speak most for (side 1) or against (side -1) the target, strongest first."""
    weights = relative_weights(scores) * side
    strongest = np.argsort(-weights, kind="stable")[:STRONGEST]
    return [int(unit) for unit in strongest if weights[unit] >= SILENT_WEIGHT]


def terminal_strongest_units(explanation: Explanation, style: TerminalStyle, width: int) -> Table:
    """The strongest units for the target and against it, with their scores; side by side where there is room."""
    scores = explanation.scores
    sides = []
    title = "for" if has_negative_scores(scores) else "strongest"
    for side, side_title in ((1, title), (-1, "against")):
        units = strongest_units_on_side(scores, side)
        if units:
            sides.append((side_title, units))

    across = 1
    if width >= WIDE:
        across = len(sides)
    room = (width - 2 - GAP * (across - 1)) // across
    tables = []
    for side_title, units in sides:
        tables.append(terminal_units_of_side(explanation, units, side_title, style, room))

    grid = Table.grid(padding=(0, GAP))
    if across > 1:
        grid.add_row(*tables)
    else:
        for table in tables:
            grid.add_row(table)
    return grid


def terminal_units_of_side(
    explanation: Explanation, units: Sequence[int], title: str, style: TerminalStyle, room: int
) -> Table:
    """One side; widths are fixed here, since bars that a narrow table had shortened would tell lies."""
    weights = relative_weights(explanation.scores)
    largest = float(np.abs(explanation.scores).max())
    names = [unit_name_in_one_line(explanation, unit) for unit in units]
    shown_scores = []
    for unit in units:
        score = float(explanation.scores[unit])
        shown_scores.append(signed_score(score, largest))

    score_width = max(map(len, shown_scores))
    left = room - score_width - 4  # two gaps of two cells
    bar_width = max(1, min(LONGEST_BAR, left - 8))
    longest = max(len(title), *(name.cell_len for name in names))
    name_width = max(1, min(LONGEST_NAME, left - bar_width, longest))

    table = empty_terminal_table()
    table.add_column(title, width=name_width, no_wrap=True, overflow="ellipsis")
    table.add_column("score", justify="right", no_wrap=True, min_width=score_width)
    table.add_column("", width=bar_width, no_wrap=True)
    for unit, name, shown in zip(units, names, shown_scores, strict=True):
        bar = style.bar(float(weights[unit]), bar_width)
        table.add_row(name, shown, bar)
    return table


def unit_name_in_one_line(explanation: Explanation, unit: int) -> Text:
    """The name of a unit without line breaks; a sign where it is blank."""
    words = clean_text(explanation.units.names[unit]).split()
    return Text(" ".join(words) or "␣")
