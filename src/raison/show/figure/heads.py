"""Attention heads that matter, as a picture: a grid with blocks down and heads across (P4 Figure 5).

The same statistics and masks give the same file, byte by byte.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from raison.show.colour_scale import AGAINST_TARGET, FOR_TARGET, hexadecimal_colour, ink_colour
from raison.show.figure.canvas import (
    ALARM,
    FAINT,
    INK,
    MARGIN,
    NOTE,
    QUIET,
    SMALL,
    TEXT,
    WordRuler,
    draw_figure_header,
    draw_small_print_on_canvas,
    figure_canvas,
)
from raison.show.figure.savefig import save_figure
from raison.show.head_selection import HeadSelection, list_head_blocks, signed_head_offset

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_heads"]

WIDE, HIGH, LARGEST = 0.62, 0.27, 20.0  # inches of a cell, and of the longest side
LABEL, TIGHT = 6.5, 5.5  # points
SYNTACTIC, POSITIONAL = FOR_TARGET, AGAINST_TARGET
SYNTACTIC_SHARE = 0.62  # of a cell of both kinds


@dataclass(frozen=True)
class HeadCell:
    """What a head is, and what is written on it; None: it is not of this kind."""

    syntactic: str | None = None  # its relation
    positional: str | None = None  # its relative position


@dataclass(frozen=True)
class HeadsGrid:
    """Where the cells are, in inches."""

    left: float
    top: float
    cell_width: float
    cell_height: float
    rows: int
    columns: int

    @property
    def right(self) -> float:
        return self.left + self.cell_width * self.columns

    @property
    def bottom(self) -> float:
        return self.top + self.cell_height * self.rows

    @property
    def has_room_for_words(self) -> bool:
        return self.cell_width >= WIDE * 0.8 and self.cell_height >= HIGH * 0.8


def draw_heads(selection: HeadSelection, path: str | os.PathLike[str]) -> None:
    """Write a picture of which heads are syntactic and which positional: blocks down, heads across."""
    save_figure(lambda: heads_figure(selection), path)


def heads_figure(selection: HeadSelection) -> Figure:
    """The whole picture: title, numbers of heads, names of blocks, cells and a legend."""
    statistics = selection.statistics
    rows, columns = selection.positional.shape
    chosen = int(selection.any_kind.sum())
    title = f"{statistics.model}: {chosen} of {rows * columns} heads matter"
    notes = [(statistics.corpus, QUIET)]
    if selection.empty_blocks:
        notes.append((f"no head in {list_head_blocks(selection.empty_blocks)}", ALARM))
    counts = [counts_in_head_figure(selection, row) for row in range(rows)]
    rules = selection.rules()

    ruler = WordRuler()
    grid = HeadsGrid(
        left=MARGIN + 0.25 + ruler.widest(statistics.blocks, SMALL) + 0.1,
        top=MARGIN + 0.34 + 0.19 * len(notes) + 0.35,
        cell_width=min(WIDE, LARGEST / columns),
        cell_height=min(HIGH, LARGEST / rows),
        rows=rows,
        columns=columns,
    )
    title_width = ruler(title, TEXT, "bold")
    notes_width = ruler.widest([line for line, _ in notes], NOTE)
    rules_width = ruler.widest(rules, NOTE) + 0.5
    text_width = max(title_width, notes_width, rules_width)
    grid_width = grid.right + 0.12 + ruler.widest(counts, NOTE)
    width = max(grid_width, MARGIN + text_width) + MARGIN
    height = grid.bottom + 0.3 + 0.24 * len(rules) + MARGIN
    figure, axes = figure_canvas(width, height)

    draw_figure_header(axes, title, notes)
    draw_head_numbers(axes, grid, ruler)
    # names that would overlap are left out
    letters_height = SMALL / 72 * 1.2
    every = max(1, math.ceil(letters_height / grid.cell_height))
    for row in range(rows):
        if row % every == 0:
            draw_block_name(axes, grid, row, statistics.blocks[row], counts[row])
        draw_heads_of_block(axes, grid, row, selection)
    draw_unchosen_heads(axes, grid, selection)
    draw_heads_legend(axes, grid, rules)
    return figure


def draw_heads_legend(axes: Axes, grid: HeadsGrid, rules: Sequence[str]) -> None:
    """The rules that chose the heads, beside a syntactic and a positional cell."""
    samples = (HeadCell(syntactic="obj"), HeadCell(positional="−1"))
    top = grid.bottom + 0.2
    for rule, sample in zip(rules, samples, strict=True):
        draw_head_cell(axes, sample, left=MARGIN, top=top, width=0.4, height=0.19)
        draw_small_print_on_canvas(axes, MARGIN + 0.48, top + 0.14, rule)
        top += 0.24


def counts_in_head_figure(selection: HeadSelection, row: int) -> str:
    """How many heads of each kind a block has."""
    syntactic = int(selection.syntactic[row].sum())
    positional = int(selection.positional[row].sum())
    parts = []
    if syntactic:
        parts.append(f"{syntactic} syntactic")
    if positional:
        parts.append(f"{positional} positional")
    return ", ".join(parts) or "none"


def draw_head_numbers(axes: Axes, grid: HeadsGrid, ruler: WordRuler) -> None:
    """The numbers of heads above the cells, as many as have room, and what both directions are."""
    every = max(1, math.ceil(ruler("88", SMALL) * 1.3 / grid.cell_width))
    for head in range(0, grid.columns, every):
        across = grid.left + grid.cell_width * (head + 0.5)
        axes.text(across, grid.top - 0.06, str(head), fontsize=SMALL, ha="center", color=INK)
    draw_small_print_on_canvas(axes, grid.left, grid.top - 0.24, "head")
    middle = (grid.top + grid.bottom) / 2
    axes.text(
        MARGIN + 0.08,
        middle,
        "block",
        fontsize=NOTE,
        color=QUIET,
        rotation=90,
        va="center",
        ha="center",
    )


def draw_block_name(axes: Axes, grid: HeadsGrid, row: int, block: str, count: str) -> None:
    """The name of a block on the left, and how many heads it has on the right."""
    middle = grid.top + grid.cell_height * (row + 0.5)
    colour = ALARM if count == "none" else INK
    axes.text(
        grid.left - 0.1,
        middle,
        block,
        fontsize=SMALL,
        ha="right",
        va="center_baseline",
        color=colour,
    )
    axes.text(grid.right + 0.1, middle, count, fontsize=NOTE, va="center_baseline", color=QUIET)


def draw_heads_of_block(axes: Axes, grid: HeadsGrid, row: int, selection: HeadSelection) -> None:
    """The chosen heads of a block, in colour."""
    for head in range(grid.columns):
        draw_head_cell(
            axes,
            head_cell_of(selection, row, head, named=grid.has_room_for_words),
            left=grid.left + grid.cell_width * head,
            top=grid.top + grid.cell_height * row,
            width=grid.cell_width,
            height=grid.cell_height,
        )


def draw_unchosen_heads(axes: Axes, grid: HeadsGrid, selection: HeadSelection) -> None:
    """The heads that were not chosen, as dots, all at once."""
    rows, heads = np.nonzero(~selection.any_kind)
    across = grid.left + grid.cell_width * (heads + 0.5)
    down = grid.top + grid.cell_height * (rows + 0.5)
    size = min(grid.cell_width, grid.cell_height) * 0.12 * 72
    axes.plot(across, down, "o", markersize=size, markerfacecolor=FAINT, markeredgewidth=0)


def head_cell_of(selection: HeadSelection, row: int, head: int, *, named: bool) -> HeadCell:
    """What one head is; its relation and position are written down only where it is `named`."""
    statistics = selection.statistics
    relation = offset = None
    if selection.syntactic[row, head]:
        relation = ""
        if named:
            relation = statistics.best_relation(row, head)
    if selection.positional[row, head]:
        offset = ""
        if named:
            offset = signed_head_offset(int(statistics.offsets[row, head]))
    return HeadCell(syntactic=relation, positional=offset)


def draw_head_cell(
    axes: Axes, cell: HeadCell, *, left: float, top: float, width: float, height: float
) -> None:
    """One head: the relation on orange, the relative position on blue, both beside each other."""
    from matplotlib.patches import Rectangle

    is_both = cell.syntactic is not None and cell.positional is not None
    font_size = TIGHT if is_both else LABEL
    parts = []
    if cell.syntactic is not None:
        parts.append((cell.syntactic, SYNTACTIC, SYNTACTIC_SHARE if is_both else 1.0))
    if cell.positional is not None:
        parts.append((cell.positional, POSITIONAL, 1 - SYNTACTIC_SHARE if is_both else 1.0))

    gap = min(width, height) * 0.06
    inner_height = height - 2 * gap
    start = left + gap
    for word, colour, share in parts:
        part = (width - 2 * gap) * share
        paint = hexadecimal_colour(colour)
        ink = hexadecimal_colour(ink_colour(colour))
        corner = (start, top + gap)
        axes.add_patch(Rectangle(corner, part, inner_height, facecolor=paint, edgecolor="none"))
        axes.text(
            start + part / 2,
            top + height / 2,
            word,
            fontsize=font_size,
            ha="center",
            va="center_baseline",
            color=ink,
        )
        start += part
