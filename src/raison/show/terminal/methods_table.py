"""Scores of several methods in the terminal: units down and methods across."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from raison.core.records import Explanation
from raison.show import scale
from raison.show.consensus import method_titles
from raison.show.spans import selection
from raison.show.terminal.columns import GAP, bare_table, columns_side_by_side, fold_titles, widest
from raison.show.terminal.style import TerminalStyle
from raison.show.wording import short, signed_number

__all__ = ["LONGEST_NAME", "methods_tables"]

MOST_UNITS = 12  # shown
LONGEST_NAME = 24  # cells of a unit's name


def methods_tables(
    explanations: Sequence[Explanation], style: TerminalStyle, width: int
) -> Iterator[RenderableType]:
    """Scores of explanations that share their units; the units that matter most to all methods, in reading order.

    As many methods stand beside each other as `width` has room for; the others follow below.
    """
    names = explanations[0].units.names
    units = strongest_for_all(explanations)
    rows = [short(names[unit], LONGEST_NAME, style.dots) for unit in units]
    corner = "unit" if len(units) == len(names) else f"strongest {len(units)} of {len(names)}"
    room = width - widest([corner, *rows]) - GAP

    columns = [column_of_scores(explanation, units, style) for explanation in explanations]
    titles = fold_titles(method_titles(explanations), room)
    widths = []
    for title, column in zip(titles, columns, strict=True):
        widths.append(widest([*title.split("\n"), *(cell.plain for cell in column)]))

    for group in columns_side_by_side(widths, room):
        table = bare_table(corner, *(titles[place] for place in group))
        for row, name in enumerate(rows):
            table.add_row(Text(name), *(columns[place][row] for place in group))
        yield table


def strongest_for_all(explanations: Sequence[Explanation]) -> list[int]:
    """The units of the highest mean |weight| over all methods, in reading order."""
    weights = np.stack(
        [scale.weights(explanation.scores) for explanation in explanations]
    )  # [methods u]
    importance = np.abs(weights).mean(0)
    strongest = np.argsort(-importance, kind="stable")[:MOST_UNITS]
    return sorted(strongest.tolist())


def column_of_scores(
    explanation: Explanation, units: Sequence[int], style: TerminalStyle
) -> list[Text]:
    """What one method says about each unit: its score, starred where it was selected, or only whether it was."""
    selected = (
        explanation.selected
        if explanation.selected is not None
        else np.zeros(len(explanation.units), bool)
    )
    if selection(explanation):
        return [Text("selected" if selected[unit] else "") for unit in units]

    weights = scale.weights(explanation.scores)
    largest = float(np.abs(explanation.scores).max())
    cells = []
    for unit in units:
        score = signed_number(float(explanation.scores[unit]), largest)
        star = "*" if selected[unit] else ""
        cells.append(Text.assemble(star, (f" {score}", style.tint(float(weights[unit])))))
    return cells
