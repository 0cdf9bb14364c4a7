"""The matrix of rationales as a picture: a grid of cells with names of rows and columns, and a legend (P0, Figure 1).

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
    SMALL,
    TEXT,
    WordRuler,
    draw_figure_header,
    draw_small_print_on_canvas,
    figure_canvas,
)
from raison.show.rationale_matrix import (
    GIVEN,
    INSUFFICIENT,
    SPARED,
    RationaleMatrix,
    matrix_facts,
    matrix_row_alarms,
)
from raison.show.text_formats import clean_text, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["matrix_figure"]

CELL, LARGEST = 0.23, 40.0  # inches of a cell, and of the whole matrix
SIGN = 0.16  # inches of a cell in the legend
LINKED = "linked by people"


@dataclass(frozen=True)
class MatrixGrid:
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


def matrix_figure(matrix: RationaleMatrix) -> Figure:
    """The whole picture: title, names, cells and a legend."""
    row_names = [matrix_row_name(matrix, row) for row in range(len(matrix.rows))]
    column_names = [short_name(column.name, 18) for column in matrix.columns]
    title = f"{len(matrix.rows)} rationales of one text"
    model = clean_text(matrix.rows[0].model)
    about = " · ".join([model, *matrix_facts(matrix)])
    alarms = [f"{alarm.sign}  {alarm.meaning}" for alarm in matrix.alarms()]

    ruler = WordRuler()
    grid = matrix_grid_of(matrix, row_names, column_names, ruler)
    legend_width = 3.6
    if matrix.gold is not None:
        legend_width += 1.4
    text_width = max(
        ruler(title, TEXT, "bold"),
        ruler(about, NOTE),
        legend_width,
        ruler.widest(alarms, NOTE),
    )
    legend_top = grid.bottom + 0.2
    width = max(grid.right, MARGIN + text_width) + MARGIN
    height = legend_top + 0.2 * (1 + len(alarms)) + MARGIN - 0.1
    figure, axes = figure_canvas(width, height)

    draw_figure_header(axes, title, [])
    draw_small_print_on_canvas(axes, MARGIN, MARGIN + 0.32, about)
    draw_matrix_column_names(axes, grid, column_names)
    for row, name in enumerate(row_names):
        if row % grid.named_every == 0:
            warned = INSUFFICIENT in matrix_row_alarms(matrix.rows[row])
            draw_matrix_row_name(axes, grid, row, name, warned=warned)
        draw_matrix_row(axes, grid, matrix, row)
    draw_spared_matrix_cells(axes, grid, matrix)
    draw_matrix_legend(axes, matrix, legend_top, ruler)
    for number, line in enumerate(alarms):
        down = legend_top + 0.33 + 0.2 * number
        draw_small_print_on_canvas(axes, MARGIN, down, line)
    return figure


def matrix_grid_of(
    matrix: RationaleMatrix,
    row_names: Sequence[str],
    column_names: Sequence[str],
    ruler: WordRuler,
) -> MatrixGrid:
    """The place of the cells: as large as usual, or as many as there are fit into the largest picture."""
    most_cells = max(1, len(matrix.columns), len(matrix.rows))
    cell = min(CELL, LARGEST / most_cells)
    font_size = min(SMALL, max(4.0, cell * 72 * 0.6))
    columns = []
    segments = 0  # begun before this column; a new one stands a little apart
    for column in range(len(matrix.columns)):
        segments += matrix.begins_segment(column)
        columns.append(cell * (column + 0.6 * segments))
    return MatrixGrid(
        left=MARGIN + ruler.widest(row_names, font_size) + 0.1,
        top=MARGIN + 0.55 + ruler.widest(column_names, font_size),
        cell=cell,
        columns=tuple(columns),
        rows=len(matrix.rows),
        font_size=font_size,
    )


def matrix_row_name(matrix: RationaleMatrix, row: int) -> str:
    """The target of a row, and the signs of its alarms."""
    explanation = matrix.rows[row]
    signs = [f" {alarm.sign}" for alarm in matrix_row_alarms(explanation)]
    return short_name(explanation.target.text, 24) + "".join(signs)


def draw_matrix_column_names(axes: Axes, grid: MatrixGrid, names: Sequence[str]) -> None:
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


def draw_matrix_row_name(
    axes: Axes, grid: MatrixGrid, row: int, name: str, *, warned: bool
) -> None:
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


def draw_matrix_row(axes: Axes, grid: MatrixGrid, matrix: RationaleMatrix, row: int) -> None:
    """The cells of a row that are kept, and frames around what people linked to it."""
    down = grid.down(row)
    states = matrix.cells[row]
    for column in np.flatnonzero(states >= GIVEN).tolist():
        draw_matrix_cell(axes, int(states[column]), grid.across(column), down, grid.cell)
    if matrix.gold is not None:
        for column in np.flatnonzero(matrix.gold[row]).tolist():
            draw_matrix_frame(axes, grid.across(column), down, grid.cell)


def draw_spared_matrix_cells(axes: Axes, grid: MatrixGrid, matrix: RationaleMatrix) -> None:
    """The cells that are not needed, all at once: there may be many thousands."""
    rows, columns = np.nonzero(matrix.cells == SPARED)
    across = [grid.across(column) + grid.cell / 2 for column in columns.tolist()]
    down = [grid.down(row + 0.5) for row in rows.tolist()]
    draw_matrix_dots(axes, across, down, grid.cell)


def draw_matrix_legend(axes: Axes, matrix: RationaleMatrix, top: float, ruler: WordRuler) -> None:
    """What cells mean, only those that occur; and frames, where people were asked."""
    left = MARGIN
    middle = top + SIGN / 2
    baseline = top + 0.13
    for state, meaning in matrix.meanings().items():
        if state == SPARED:
            draw_matrix_dots(axes, [left + SIGN / 2], [middle], CELL)
        else:
            draw_matrix_cell(axes, state, left, top, SIGN)
        draw_small_print_on_canvas(axes, left + 0.22, baseline, meaning)
        left += 0.22 + ruler(meaning, NOTE) + 0.25
    if matrix.gold is not None:
        draw_matrix_frame(axes, left, top, SIGN)
        draw_small_print_on_canvas(axes, left + 0.22, baseline, LINKED)


def draw_matrix_cell(axes: Axes, state: int, left: float, top: float, cell: float) -> None:
    """One cell; not only colours differ."""
    from matplotlib.patches import Rectangle

    gap = cell * 0.06
    corner, size = (left + gap, top + gap), cell - 2 * gap
    patch = Rectangle(corner, size, size, lw=0.6, facecolor=KEPT, edgecolor="none")
    if state == GIVEN:
        patch = Rectangle(
            corner, size, size, lw=0.6, facecolor="white", edgecolor=HATCH, hatch="//////"
        )
    axes.add_patch(patch)


def draw_matrix_frame(axes: Axes, left: float, top: float, cell: float) -> None:
    """A cell that people chose, whatever is in it."""
    from matplotlib.patches import Rectangle

    corner, size = (left + cell * 0.06, top + cell * 0.06), cell * 0.88
    axes.add_patch(Rectangle(corner, size, size, fill=False, edgecolor=INK, lw=1.5, zorder=3))


def draw_matrix_dots(
    axes: Axes, across: Sequence[float], down: Sequence[float], cell: float
) -> None:
    """Cells that are not needed."""
    size = cell * 0.14 * 72
    axes.plot(across, down, "o", markersize=size, markerfacecolor=FAINT, markeredgewidth=0)
