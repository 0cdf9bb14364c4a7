"""An evaluation in the terminal: methods down, numbers across, as many tables as the width asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from raison.core.evaluation import Column, Evaluation
from raison.show.scoreboard import COSTS, between, costs, headings, number, summary, winners
from raison.show.wording import clean

__all__ = ["GAP", "render_evaluation"]

GAP = 2  # columns between cells
MEASURING = "measuring all of them"


def render_evaluation(evaluation: Evaluation, console: Console) -> None:
    """Print what was evaluated, the numbers, what they cost, and what a reader must know."""
    title, *notes = summary(evaluation)
    names_width = width_of_names(evaluation, console.width)
    console.print(Text(title, style="bold"))
    for columns in groups_of_columns(evaluation, console.width):
        console.print()
        console.print(numbers_table(evaluation, columns, names_width))
    console.print()
    console.print(costs_table(evaluation, names_width))
    console.print()
    for note in notes:
        console.print(Text(note, style="dim"))


def width_of_names(evaluation: Evaluation, width: int) -> int:
    """Columns for the names of methods: long ones are folded, so that no number is."""
    longest = max(len(clean(name)) for name in (*evaluation.methods, MEASURING))
    return min(longest, max(12, width // 2))


def groups_of_columns(evaluation: Evaluation, width: int) -> Iterator[list[Column]]:
    """The columns in groups that fit beside the names."""
    left = width_of_names(evaluation, width)
    group: list[Column] = []
    used = left
    for column in evaluation.columns:
        wide = GAP + width_of_column(evaluation, column)
        if group and used + wide > width:
            yield group
            group, used = [], left
        group.append(column)
        used += wide
    if group:
        yield group


def width_of_column(evaluation: Evaluation, column: Column) -> int:
    """The widest of a heading and the numbers and intervals below it."""
    width = len(headings(column))
    for method in evaluation.methods:
        cell = evaluation.cell(method, column.key)
        width = max(width, len(between(cell)), len(number(cell.value)))
    return width


def empty_table(first: str, names_width: int, headings: Sequence[str]) -> Table:
    """A table without rows: names of methods, and numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    table.add_column(first, max_width=names_width, overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def numbers_table(evaluation: Evaluation, columns: Sequence[Column], names_width: int) -> Table:
    """Numbers over their intervals; the best of a column is bold."""
    table = empty_table("method", names_width, [headings(column) for column in columns])
    best = {column.key: winners(evaluation, column) for column in columns}
    for method in evaluation.methods:
        cells = []
        for column in columns:
            cell = evaluation.cell(method, column.key)
            value = Text(number(cell.value), style="bold" if method in best[column.key] else "")
            cells.append(Group(value, Text(between(cell), style="dim")))
        table.add_row(Text(clean(method)), *cells)
    return table


def costs_table(evaluation: Evaluation, names_width: int) -> Table:
    """What the explanations took, per text; and what measuring them took."""
    table = empty_table("cost per text", names_width, list(COSTS.values()))
    for name in [*evaluation.methods, "metrics"]:
        if name in evaluation.costs:
            shown = name if name in evaluation.methods else MEASURING
            table.add_row(Text(clean(shown)), *costs(evaluation, name))
    return table
