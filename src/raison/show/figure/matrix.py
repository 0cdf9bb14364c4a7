"""The matrix of rationales as a picture (P0, Figure 1).

Filled cells are rationales, hatched ones are given, dots are not needed; frames are links that people made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from raison.show.figure.canvas import (
    ALARM,
    FAINT,
    HATCH,
    INK,
    KEPT,
    MARGIN,
    NOTE,
    QUIET,
    SMALL,
    TEXT,
    Ruler,
    canvas,
    write_header,
)
from raison.show.matrix import GIVEN, INSUFFICIENT, SPARED, Matrix, alarms_of, facts
from raison.show.wording import clean, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["matrix_figure"]

CELL, LARGEST = 0.23, 40.0  # inches of a cell, and of the whole matrix
SIGN = 0.16  # inches of a cell in the legend
LINKED = "linked by people"


@dataclass(frozen=True)
class Grid:
    """Where the cells are, in inches, and how large their names are."""

    left: float
    top: float
    cell: float
    columns: tuple[float, ...]  # where each begins, from the left side of the grid
    rows: int
    font_size: float

    @property
    def right(self) -> float:
        return self.left + self.columns[-1] + self.cell

    @property
    def bottom(self) -> float:
        return self.top + self.cell * self.rows

    @property
    def named_every(self) -> int:
        """Of how many names one is written: those that would overlap are left out."""
        return max(1, round(self.font_size / 72 * 1.1 / self.cell))

    def across(self, column: int) -> float:
        return self.left + self.columns[column]

    def down(self, row: float) -> float:
        return self.top + self.cell * row


def matrix_figure(matrix: Matrix) -> Figure:
    """The whole picture: title, names, cells and a legend."""
    ruler = Ruler()
    row_names = [name_of_row(matrix, row) for row in range(len(matrix.rows))]
    column_names = [short(column.name, 18) for column in matrix.columns]
    title = f"{len(matrix.rows)} rationales of one text"
    about = " · ".join([clean(matrix.rows[0].model), *facts(matrix)])
    alarm_lines = [f"{alarm.sign}  {alarm.meaning}" for alarm in matrix.alarms()]

    grid = grid_of(matrix, row_names, column_names, ruler)
    text_width = max(
        ruler(title, TEXT, "bold"),
        ruler(about, NOTE),
        3.6 + 1.4 * (matrix.gold is not None),  # of the legend
        ruler.widest(alarm_lines, NOTE),
    )
    width = max(grid.right, MARGIN + text_width) + MARGIN
    legend_top = grid.bottom + 0.2
    figure, axes = canvas(width, legend_top + 0.2 * (1 + len(alarm_lines)) + MARGIN - 0.1)

    write_header(axes, title, [])
    axes.text(MARGIN, MARGIN + 0.32, about, fontsize=NOTE, color=QUIET)
    write_column_names(axes, grid, column_names)
    for row, name in enumerate(row_names):
        if row % grid.named_every == 0:
            write_row_name(
                axes, grid, row, name, warned=INSUFFICIENT in alarms_of(matrix.rows[row])
            )
        draw_row(axes, grid, matrix, row)
    draw_spared_cells(axes, grid, matrix)
    draw_legend(axes, matrix, legend_top, ruler)
    for number, line in enumerate(alarm_lines):
        axes.text(MARGIN, legend_top + 0.33 + 0.2 * number, line, fontsize=NOTE, color=QUIET)
    return figure


def grid_of(
    matrix: Matrix, row_names: Sequence[str], column_names: Sequence[str], ruler: Ruler
) -> Grid:
    """The place of the cells: as large as usual, or as many as there are fit into the largest picture."""
    cell = min(CELL, LARGEST / max(1, len(matrix.columns), len(matrix.rows)))
    font_size = min(SMALL, max(4.0, cell * 72 * 0.6))
    columns = []
    segments = 0  # begun before this column; a new one stands a little apart
    for column in range(len(matrix.columns)):
        segments += matrix.begins_segment(column)
        columns.append(cell * (column + 0.6 * segments))
    return Grid(
        left=MARGIN + ruler.widest(row_names, font_size) + 0.1,
        top=MARGIN + 0.55 + ruler.widest(column_names, font_size),
        cell=cell,
        columns=tuple(columns),
        rows=len(matrix.rows),
        font_size=font_size,
    )


def name_of_row(matrix: Matrix, row: int) -> str:
    """The target of a row, and the signs of its alarms."""
    explanation = matrix.rows[row]
    signs = [f" {alarm.sign}" for alarm in alarms_of(explanation)]
    return short(explanation.target.text, 24) + "".join(signs)


def write_column_names(axes: Axes, grid: Grid, names: Sequence[str]) -> None:
    """The names of columns, from the bottom to the top."""
    for column in range(0, len(names), grid.named_every):
        axes.text(
            grid.across(column) + grid.cell / 2,
            grid.top - 0.05,
            names[column],
            fontsize=grid.font_size,
            rotation=90,
            ha="center",
            va="bottom",
            color=INK,
        )


def write_row_name(axes: Axes, grid: Grid, row: int, name: str, *, warned: bool) -> None:
    """The name of a row on its left."""
    axes.text(
        grid.left - 0.07,
        grid.down(row + 0.5),
        name,
        fontsize=grid.font_size,
        ha="right",
        va="center_baseline",
        color=ALARM if warned else INK,
    )


def draw_row(axes: Axes, grid: Grid, matrix: Matrix, row: int) -> None:
    """The cells of a row that are kept, and frames around what people linked to it."""
    for column in np.flatnonzero(matrix.cells[row] >= GIVEN).tolist():
        draw_cell(
            axes, int(matrix.cells[row, column]), grid.across(column), grid.down(row), grid.cell
        )
    if matrix.gold is not None:
        for column in np.flatnonzero(matrix.gold[row]).tolist():
            draw_frame(axes, grid.across(column), grid.down(row), grid.cell)


def draw_spared_cells(axes: Axes, grid: Grid, matrix: Matrix) -> None:
    """The cells that are not needed, all at once: there may be many thousands."""
    rows, columns = np.nonzero(matrix.cells == SPARED)
    across = [grid.across(column) + grid.cell / 2 for column in columns.tolist()]
    down = [grid.down(row + 0.5) for row in rows.tolist()]
    draw_dots(axes, across, down, grid.cell)


def draw_legend(axes: Axes, matrix: Matrix, top: float, ruler: Ruler) -> None:
    """What cells mean, only those that occur; and frames, where people were asked."""
    left = MARGIN
    for state, meaning in matrix.meanings().items():
        if state == SPARED:
            draw_dots(axes, [left + SIGN / 2], [top + SIGN / 2], CELL)
        else:
            draw_cell(axes, state, left, top, SIGN)
        axes.text(left + 0.22, top + 0.13, meaning, fontsize=NOTE, color=QUIET)
        left += 0.22 + ruler(meaning, NOTE) + 0.25
    if matrix.gold is not None:
        draw_frame(axes, left, top, SIGN)
        axes.text(left + 0.22, top + 0.13, LINKED, fontsize=NOTE, color=QUIET)


def draw_cell(axes: Axes, state: int, left: float, top: float, cell: float) -> None:
    """One cell; not only colours differ."""
    from matplotlib.patches import Rectangle

    gap = cell * 0.06
    corner, size = (left + gap, top + gap), cell - 2 * gap
    if state == GIVEN:
        axes.add_patch(
            Rectangle(
                corner, size, size, lw=0.6, facecolor="white", edgecolor=HATCH, hatch="//////"
            )
        )
    else:
        axes.add_patch(Rectangle(corner, size, size, lw=0.6, facecolor=KEPT, edgecolor="none"))


def draw_frame(axes: Axes, left: float, top: float, cell: float) -> None:
    """A cell that people chose, whatever is in it."""
    from matplotlib.patches import Rectangle

    corner, size = (left + cell * 0.06, top + cell * 0.06), cell * 0.88
    axes.add_patch(Rectangle(corner, size, size, fill=False, edgecolor=INK, lw=1.5, zorder=3))


def draw_dots(axes: Axes, across: Sequence[float], down: Sequence[float], cell: float) -> None:
    """Cells that are not needed."""
    axes.plot(
        across, down, "o", markersize=cell * 0.14 * 72, markerfacecolor=FAINT, markeredgewidth=0
    )
