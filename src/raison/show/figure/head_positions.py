"""The positions of dependents relative to their head words, as a picture: one panel a relation (P4 Figure 1)."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from raison.core.errors import InputError
from raison.show.colour_scale import AGAINST_TARGET, FOR_TARGET, hexadecimal_colour
from raison.show.figure.canvas import (
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
    hide_panel_frame_in_picture,
)
from raison.show.figure.savefig import save_figure
from raison.show.head_selection import HeadRelation, HeadSelection, signed_head_offset
from raison.show.text_formats import clean_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_head_positions"]

FURTHEST = 8  # words: relative positions further away are drawn as one bar at each side
BEYOND = FURTHEST + 1  # where that bar stands
PANEL_WIDTH, PANEL_HEIGHT = 3.1, 1.75  # inches
GAP, HEAD, FOOT = 0.55, 0.42, 0.38  # inches between panels, above one, and below it
ROW = HEAD + PANEL_HEIGHT + FOOT
BEST_BAR, BEST_HEAD = (
    hexadecimal_colour(FOR_TARGET),
    hexadecimal_colour(AGAINST_TARGET),
)
BAR = "#8f929a"
DASHES = (0, (4, 3))


def draw_head_positions(selection: HeadSelection, path: str | os.PathLike[str]) -> None:
    """Write a picture of where dependents stand relative to their head words, for each relation."""
    save_figure(lambda: head_positions_figure(selection), path)


def head_positions_figure(selection: HeadSelection) -> Figure:
    """The panels of all relations, two beside each other, and a legend below."""
    statistics = selection.statistics
    relations = statistics.counted
    if not relations:
        raise InputError(
            "This file of heads has no pairs of words: there are no positions to draw."
        )
    across = min(2, len(relations))
    down = math.ceil(len(relations) / across)

    title = "Where dependents stand, in words before or behind their head word"
    note = f"{statistics.corpus} · {statistics.model}"
    legend = positions_legend(selection)

    ruler = WordRuler()
    legend_width = ruler.widest([line for _, line in legend], NOTE) + 0.4
    text_width = max(ruler(title, TEXT, "bold"), ruler(note, NOTE), legend_width)
    left, top = MARGIN + 0.3, MARGIN + 0.34 + 0.19
    panels_width = PANEL_WIDTH * across + GAP * (across - 1)
    width = max(left + panels_width, MARGIN + text_width) + MARGIN
    bottom = top + down * ROW
    height = bottom + 0.2 * len(legend) + MARGIN

    figure, axes = figure_canvas(width, height)
    draw_figure_header(axes, title, [(note, QUIET)])
    tallest = max(top_of_positions_panel(selection, relation) for relation in relations)
    for number, relation in enumerate(relations):
        row, column = divmod(number, across)
        x = left + column * (PANEL_WIDTH + GAP)
        y = top + row * ROW + HEAD
        panel_bottom = 1 - (y + PANEL_HEIGHT) / height
        panel = figure.add_axes(
            (x / width, panel_bottom, PANEL_WIDTH / width, PANEL_HEIGHT / height)
        )
        draw_positions_panel(panel, selection, relation)
        style_positions_panel(panel, tallest)
        draw_positions_title(axes, selection, relation, x, y)
    for number, (sign, line) in enumerate(legend):
        middle = bottom + 0.2 * number
        draw_positions_legend_sign(axes, sign, MARGIN, middle)
        axes.text(MARGIN + 0.35, middle, line, fontsize=NOTE, color=QUIET, va="center_baseline")
    return figure


def positions_legend(selection: HeadSelection) -> list[tuple[str, str]]:
    """The signs of the legend, and what they mean."""
    statistics = selection.statistics
    sides = ", on both sides together" if statistics.both_sides else ""
    return [
        ("square", f"max λ: what a look at one fixed relative position finds{sides}"),
        ("dashes", f"what a syntactic head must exceed: max λ + {selection.syntactic_margin:g}"),
        ("dot", f"the best head of {statistics.model}"),
    ]


def draw_positions_title(
    axes: Axes, selection: HeadSelection, relation: HeadRelation, x: float, y: float
) -> None:
    """The name of a relation above its panel, and the numbers of its best position and head."""
    best = selection.statistics.best_head(relation)
    about = f"{relation.pairs} pairs · max λ {relation.max_lambda:.2f} · {best}"
    name = clean_text(relation.name)
    axes.text(x, y - 0.24, name, fontsize=SMALL + 1, fontweight="bold", color=INK)
    draw_small_print_on_canvas(axes, x, y - 0.07, about)


def draw_positions_legend_sign(axes: Axes, sign: str, left: float, middle: float) -> None:
    """A sign of the legend, as it looks in the panels."""
    from matplotlib.patches import Rectangle

    line = [left, left + 0.25]
    heights = [middle, middle]
    if sign == "square":
        corner = (left + 0.06, middle - 0.06)
        axes.add_patch(Rectangle(corner, 0.12, 0.12, facecolor=BEST_BAR, edgecolor="none"))
    elif sign == "dashes":
        axes.plot(line, heights, color=INK, linewidth=0.9, linestyle=DASHES)
    else:
        axes.plot(line, heights, color=BEST_HEAD, linewidth=0.9)
        axes.plot([left + 0.125], [middle], "o", markersize=5, color=BEST_HEAD)


def top_of_positions_panel(selection: HeadSelection, relation: HeadRelation) -> float:
    """The share up to which a panel reaches: a little above all that is drawn in it."""
    best = selection.statistics.best_head(relation)
    highest = max(alpha_to_exceed(selection, relation), best.alpha)
    return min(1.02, highest * 1.12)


def alpha_to_exceed(selection: HeadSelection, relation: HeadRelation) -> float:
    """α above which a head is syntactic."""
    return relation.max_lambda + selection.syntactic_margin


def draw_positions_panel(panel: Axes, selection: HeadSelection, relation: HeadRelation) -> None:
    """λ of one relation as bars, the bar that one fixed position reaches in colour; lines for what heads reach."""
    bars = dict.fromkeys(range(-BEYOND, BEYOND + 1), 0.0)
    for distance, share in relation.shares.items():
        bars[place_of_position_bar(distance)] += share

    best_bars = best_position_bars(relation, both_sides=selection.statistics.both_sides)
    for place, share in bars.items():
        colour = BAR
        if place in best_bars:
            colour = BEST_BAR
        elif abs(place) == BEYOND:
            colour = FAINT
        panel.bar(place, share, width=0.78, color=colour, linewidth=0)

    best = selection.statistics.best_head(relation).alpha
    least = alpha_to_exceed(selection, relation)
    panel.axhline(least, color=INK, linewidth=0.9, linestyle=DASHES)
    panel.axhline(best, color=BEST_HEAD, linewidth=0.9)
    panel.plot([BEYOND], [best], "o", markersize=5, color=BEST_HEAD, clip_on=False)


def place_of_position_bar(distance: int) -> int:
    """Where a relative position is drawn."""
    return max(-BEYOND, min(BEYOND, distance))


def best_position_bars(relation: HeadRelation, *, both_sides: bool) -> set[int]:
    """The bars that a look at the best fixed position reaches; of equal ones the nearest."""
    reached = dict(relation.shares)
    if both_sides:
        for distance, share in relation.shares.items():
            reached[distance] = share + relation.shares.get(-distance, 0.0)

    def rank(distance: int) -> tuple[float, int, int]:
        return reached[distance], -abs(distance), distance

    place = place_of_position_bar(max(reached, key=rank))
    if both_sides:
        return {place, -place}
    return {place}


def style_positions_panel(panel: Axes, tallest: float) -> None:
    """Limits, numbers and lines around the bars."""
    from matplotlib.ticker import MultipleLocator

    panel.set_xlim(-BEYOND - 0.6, BEYOND + 0.6)
    panel.set_ylim(0, tallest)
    inner = [-6, -4, -2, 0, 2, 4, 6]
    names = [f"≤−{BEYOND}", *map(signed_head_offset, inner), f"≥+{BEYOND}"]
    panel.set_xticks([-BEYOND, *inner, BEYOND], names, fontsize=7, color=QUIET)
    panel.tick_params(axis="both", length=2, color=FAINT, pad=2)
    panel.yaxis.set_major_locator(MultipleLocator(0.2))
    panel.tick_params(axis="y", labelsize=7, labelcolor=QUIET)
    hide_panel_frame_in_picture(panel)
    for side in ("left", "bottom"):
        panel.spines[side].set_color(FAINT)
