"""The positions of dependents relative to their head words, as a picture: one panel a relation (P4 Figure 1)."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
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
BEST_BAR = hexadecimal_colour(FOR_TARGET)
BEST_HEAD = hexadecimal_colour(AGAINST_TARGET)
LINE_WIDTH, DOT_SIZE = 0.9, 5  # points
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
    count = len(relations)
    across = min(2, count)
    down = math.ceil(count / across)

    title = "Where dependents stand, in words before or behind their head word"
    note = f"{statistics.corpus} · {statistics.model}"
    legend = positions_legend(selection)

    ruler = WordRuler()
    legend_lines = [line for _, line in legend]
    legend_width = ruler.widest(legend_lines, NOTE) + 0.4
    title_width = ruler(title, TEXT, "bold")
    note_width = ruler(note, NOTE)
    text_width = max(title_width, note_width, legend_width)
    left = MARGIN + 0.3
    top = MARGIN + 0.34 + 0.19
    panels_width = PANEL_WIDTH * across + GAP * (across - 1)
    right_of_panels = left + panels_width
    right_of_text = MARGIN + text_width
    width = max(right_of_panels, right_of_text) + MARGIN
    bottom = top + down * ROW
    legend_height = 0.2 * len(legend)
    height = bottom + legend_height + MARGIN

    figure, axes = figure_canvas(width, height)
    draw_figure_header(axes, title, [(note, QUIET)])
    tallest = max(top_of_positions_panel(selection, relation) for relation in relations)
    share_of_width = PANEL_WIDTH / width
    share_of_height = PANEL_HEIGHT / height
    for number, relation in enumerate(relations):
        row, column = divmod(number, across)
        x = left + column * (PANEL_WIDTH + GAP)
        y = top + row * ROW + HEAD
        panel_left = x / width
        panel_bottom = 1 - (y + PANEL_HEIGHT) / height
        panel = figure.add_axes((panel_left, panel_bottom, share_of_width, share_of_height))
        draw_positions_panel(panel, selection, relation)
        style_positions_panel(panel, tallest)
        draw_positions_title(axes, selection, relation, x, y)
    draw_positions_legend(axes, legend, bottom)
    return figure


def positions_legend(selection: HeadSelection) -> list[tuple[str, str]]:
    """The signs of the legend, and what they mean."""
    statistics = selection.statistics
    sides = ""
    if statistics.both_sides:
        sides = ", on both sides together"
    margin = selection.syntactic_margin
    return [
        ("square", f"max λ: what a look at one fixed relative position finds{sides}"),
        ("dashes", f"what a syntactic head must exceed: max λ + {margin:g}"),
        ("dot", f"the best head of {statistics.model}"),
    ]


def draw_positions_title(
    axes: Axes, selection: HeadSelection, relation: HeadRelation, x: float, y: float
) -> None:
    """The name of a relation above its panel, and the numbers of its best position and head."""
    best = selection.statistics.best_head(relation)
    about = f"{relation.pairs} pairs · max λ {relation.max_lambda:.2f} · {best}"
    name = clean_text(relation.name)
    name_baseline = y - 0.24
    about_baseline = y - 0.07
    axes.text(x, name_baseline, name, fontsize=SMALL + 1, fontweight="bold", color=INK)
    draw_small_print_on_canvas(axes, x, about_baseline, about)


def draw_positions_legend(axes: Axes, legend: Sequence[tuple[str, str]], top: float) -> None:
    """The signs one below the other, each with what it means."""
    start_of_line = MARGIN + 0.35
    for number, (sign, line) in enumerate(legend):
        middle = top + 0.2 * number
        draw_positions_legend_sign(axes, sign, MARGIN, middle)
        axes.text(start_of_line, middle, line, fontsize=NOTE, color=QUIET, va="center_baseline")


def draw_positions_legend_sign(axes: Axes, sign: str, left: float, middle: float) -> None:
    """A sign of the legend, as it looks in the panels."""
    from matplotlib.patches import Rectangle

    right = left + 0.25
    line = [left, right]
    heights = [middle, middle]
    if sign == "square":
        corner = (left + 0.06, middle - 0.06)
        square = Rectangle(corner, 0.12, 0.12, facecolor=BEST_BAR, edgecolor="none")
        axes.add_patch(square)
    elif sign == "dashes":
        axes.plot(line, heights, color=INK, linewidth=LINE_WIDTH, linestyle=DASHES)
    else:
        axes.plot(line, heights, color=BEST_HEAD, linewidth=LINE_WIDTH)
        middle_of_line = left + 0.125
        axes.plot([middle_of_line], [middle], "o", markersize=DOT_SIZE, color=BEST_HEAD)


def top_of_positions_panel(selection: HeadSelection, relation: HeadRelation) -> float:
    """The share up to which a panel reaches: a little above all that is drawn in it."""
    best = selection.statistics.best_head(relation)
    least = alpha_to_exceed(selection, relation)
    highest = max(least, best.alpha)
    return min(1.02, highest * 1.12)


def alpha_to_exceed(selection: HeadSelection, relation: HeadRelation) -> float:
    """α above which a head is syntactic."""
    return relation.max_lambda + selection.syntactic_margin


def draw_positions_panel(panel: Axes, selection: HeadSelection, relation: HeadRelation) -> None:
    """λ of one relation as bars, the bar that one fixed position reaches in colour; lines for what heads reach."""
    places = range(-BEYOND, BEYOND + 1)
    bars = dict.fromkeys(places, 0.0)
    for distance, share in relation.shares.items():
        place = place_of_position_bar(distance)
        bars[place] += share

    statistics = selection.statistics
    best_bars = best_position_bars(relation, both_sides=statistics.both_sides)
    for place, share in bars.items():
        colour = BAR
        if place in best_bars:
            colour = BEST_BAR
        elif abs(place) == BEYOND:
            colour = FAINT
        panel.bar(place, share, width=0.78, color=colour, linewidth=0)

    best = statistics.best_head(relation)
    alpha = best.alpha
    least = alpha_to_exceed(selection, relation)
    panel.axhline(least, color=INK, linewidth=LINE_WIDTH, linestyle=DASHES)
    panel.axhline(alpha, color=BEST_HEAD, linewidth=LINE_WIDTH)
    panel.plot([BEYOND], [alpha], "o", markersize=DOT_SIZE, color=BEST_HEAD, clip_on=False)


def place_of_position_bar(distance: int) -> int:
    """Where a relative position is drawn."""
    return max(-BEYOND, min(BEYOND, distance))


def best_position_bars(relation: HeadRelation, *, both_sides: bool) -> set[int]:
    """The bars that a look at the best fixed position reaches; of equal ones the nearest."""
    reached = dict(relation.shares)
    if both_sides:
        for distance, share in relation.shares.items():
            on_other_side = relation.shares.get(-distance, 0.0)
            reached[distance] = share + on_other_side

    def rank(distance: int) -> tuple[float, int, int]:
        return reached[distance], -abs(distance), distance

    best = max(reached, key=rank)
    place = place_of_position_bar(best)
    if both_sides:
        return {place, -place}
    return {place}


def style_positions_panel(panel: Axes, tallest: float) -> None:
    """Limits, numbers and lines around the bars."""
    from matplotlib.ticker import MultipleLocator

    reach = BEYOND + 0.6
    panel.set_xlim(-reach, reach)
    panel.set_ylim(0, tallest)

    inner = [-6, -4, -2, 0, 2, 4, 6]
    ticks = [-BEYOND, *inner, BEYOND]
    inner_names = map(signed_head_offset, inner)
    names = [f"≤−{BEYOND}", *inner_names, f"≥+{BEYOND}"]
    panel.set_xticks(ticks, names, fontsize=7, color=QUIET)
    panel.tick_params(axis="both", length=2, color=FAINT, pad=2)
    fifths = MultipleLocator(0.2)
    panel.yaxis.set_major_locator(fifths)
    panel.tick_params(axis="y", labelsize=7, labelcolor=QUIET)
    hide_panel_frame_in_picture(panel)
    for side in ("left", "bottom"):
        panel.spines[side].set_color(FAINT)
