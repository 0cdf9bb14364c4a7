"""The units that speak most for a target and against it, in the terminal, with their scores as bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.table import Table
from rich.text import Text

from raison.core.records import Explanation
from raison.show import scale
from raison.show.certificate import MOST_NAMES
from raison.show.terminal.style import TerminalStyle
from raison.show.wording import clean, plural, signed_number

__all__ = ["selected_units_line", "strongest_on_side", "tables_of_strongest"]

STRONGEST = 5  # units named on each side
LONGEST_NAME = 24  # cells
GAP, LONGEST_BAR = 4, 12  # cells between the sides, and of the longest bar
WIDE = 76  # cells from which for and against stand side by side


def selected_units_line(explanation: Explanation, style: TerminalStyle) -> Text:
    """How many units were selected, and in which order they were chosen."""
    selected = explanation.selected if explanation.selected is not None else np.zeros(0, bool)
    line = Text("rationale ", style="dim")
    line.append(
        f"{int(selected.sum())} of {plural(len(selected), explanation.units.level)}", "bold"
    )

    order = [] if explanation.order is None else explanation.order.tolist()
    names = [clean(explanation.units.names[unit]) for unit in order if selected[unit]]
    if names:
        if len(names) > MOST_NAMES:
            names = [*names[:MOST_NAMES], "…"]
        line.append(", in the order chosen: ", "dim")
        line.append(style.either(" → ", ", ").join(names))
    return line


def strongest_on_side(scores: np.ndarray, side: int) -> list[int]:
    """The units that speak most for (side 1) or against (side -1) the target, strongest first."""
    weights = scale.weights(scores) * side
    strongest = np.argsort(-weights, kind="stable")[:STRONGEST]
    return [int(unit) for unit in strongest if weights[unit] >= scale.SILENT]


def tables_of_strongest(explanation: Explanation, style: TerminalStyle, width: int) -> Table:
    """The strongest units for the target and against it, with their scores; side by side where there is room."""
    scores = explanation.scores
    units_by_title = {
        "for" if scale.has_negative(scores) else "strongest": strongest_on_side(scores, 1),
        "against": strongest_on_side(scores, -1),
    }
    sides = {title: units for title, units in units_by_title.items() if units}
    across = len(sides) if width >= WIDE else 1
    room = (width - 2 - GAP * (across - 1)) // across
    tables = [
        table_of_side(explanation, units, title, style, room) for title, units in sides.items()
    ]

    grid = Table.grid(padding=(0, GAP))
    if across > 1:
        grid.add_row(*tables)
    else:
        for table in tables:
            grid.add_row(table)
    return grid


def table_of_side(
    explanation: Explanation, units: Sequence[int], title: str, style: TerminalStyle, room: int
) -> Table:
    """One side; widths are fixed here, since bars that a narrow table had shortened would tell lies."""
    weights = scale.weights(explanation.scores)
    largest = float(np.abs(explanation.scores).max())
    names = [Text(" ".join(clean(explanation.units.names[unit]).split()) or "␣") for unit in units]
    scores = [signed_number(float(explanation.scores[unit]), largest) for unit in units]

    score_width = max(map(len, scores))
    left = room - score_width - 4  # two gaps of two cells
    bar_width = max(1, min(LONGEST_BAR, left - 8))
    longest = max(len(title), *(name.cell_len for name in names))
    name_width = max(1, min(LONGEST_NAME, left - bar_width, longest))

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column(title, width=name_width, no_wrap=True, overflow="ellipsis")
    table.add_column("score", justify="right", no_wrap=True, min_width=score_width)
    table.add_column("", width=bar_width, no_wrap=True)
    for unit, name, score in zip(units, names, scores, strict=True):
        table.add_row(name, score, style.bar(float(weights[unit]), bar_width))
    return table
