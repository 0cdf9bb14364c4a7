"""The curves of an evaluation as a picture: curves of methods over shares of units, or a column along the methods."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from raison.core.evaluation import Cell, Evaluation, MethodAxis, curve_title
from raison.show.colour_scale import METHOD_HUES
from raison.show.figure.canvas import FAINT, QUIET, empty_figure, hide_panel_frame_in_picture
from raison.show.figure.savefig import save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_curves", "shares_of_curve"]

WIDE, HIGH, KEY = 3.6, 2.7, 1.7  # inches: of a panel, and of the names beside the last
A_WORD = 0.19  # inches that a word takes below a panel
LINE_WIDTH, MARKER_SIZE = 1.4, 3  # points
ACROSS = {  # below a curve, where it is not units
    "calibration_curve": "true probability, %",
    "randomisation_curve": "randomised blocks, %",
    "repetition_curve": "position of the word, % of the context",
    "distance_curve": "distance to another word, % of the longest",
    "spread_curve": "depth, % of the blocks",
    "cosine_curve": "depth, % of the blocks",
    "tvd_curve": "JSD of attention",
}
WITHOUT_POINT_AT_NOTHING = {"aopc_curve", "lodds_curve", "randomisation_curve"}
BY_FIRST_UNITS = {"iou_at_k_curve", "f1_at_k_curve"}  # a point for each k
DASHES = ("-", "--", ":", "-.")  # after the colours are used up


@dataclass(frozen=True)
class CurveLevel:
    """A number with its interval, at a place below the panel."""

    place: float
    value: float
    low: float
    high: float

    @classmethod
    def of(cls, place: float, value: float, cell: Cell) -> CurveLevel:
        """The number of a cell; without an interval its ends are the value."""
        if cell.low is None or cell.high is None:
            return cls(place, value, low=value, high=value)
        return cls(place, value, low=cell.low, high=cell.high)


def draw_curves(
    evaluation: Evaluation,
    keys: Sequence[str],
    path: str | os.PathLike[str],
    *,
    axis: MethodAxis | None = None,
) -> None:
    """One panel for each key: a curve (`aopc_curve`) of every method, or a column (`aopc`) along the methods.

    `axis` says where methods stand below a column; without it they stand side by side.
    """
    save_figure(lambda: curves_figure(evaluation, keys, axis), path)


def curves_figure(evaluation: Evaluation, keys: Sequence[str], axis: MethodAxis | None) -> Figure:
    """One panel for each key, side by side, and a key to the methods where there are curves."""
    has_curves = any(key in evaluation.curves for key in keys)
    words = words_of_curve(evaluation)
    panel_width = max(WIDE, A_WORD * len(words))
    width = panel_width * len(keys)
    if has_curves:
        width += KEY
    figure = empty_figure(width, HIGH, layout="constrained")

    # what is of one kind (tau_words, tau_states) is seen on one scale
    first_of_kind: dict[str, Axes] = {}
    panels: list[Axes] = []
    for number, key in enumerate(keys, 1):
        kind, _, _ = key.partition("_")
        on_its_scale = first_of_kind.get(kind)
        panel = figure.add_subplot(1, len(keys), number, sharey=on_its_scale)
        first_of_kind.setdefault(kind, panel)
        panels.append(panel)
        if key in evaluation.curves:
            draw_curves_by_share(panel, evaluation, key)
        else:
            draw_column_along_methods(panel, evaluation, key, axis)
        hide_panel_frame_in_picture(panel)
        title = curve_title(key)
        panel.set_title(title, loc="left", fontsize="medium")

    if has_curves:
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center", frameon=False)
    return figure


def words_of_curve(evaluation: Evaluation) -> Sequence[str]:
    """The words that a curve of single words goes along; none where there is no such curve."""
    return evaluation.settings.get("words") or ()


def shares_of_curve(key: str, points: int) -> np.ndarray:
    """[points] the share of units at each point of a curve; some have a point at nothing, others begin later."""
    if key in WITHOUT_POINT_AT_NOTHING:
        counts = np.arange(1, points + 1)
        return counts / points
    return np.linspace(0, 1, points)


# -- a curve of every method -------------------------------------------------------------------------------------


def draw_curves_by_share(panel: Axes, evaluation: Evaluation, key: str) -> None:
    """The mean curve of each method; those of the first k units have a point for each k."""
    counted = key in BY_FIRST_UNITS
    words: Sequence[str] = ()
    if key == "alone_curve":
        words = words_of_curve(evaluation)
    places_by_key = evaluation.settings.get("across", {})
    places: Mapping[str, Sequence[float]] = places_by_key.get(key) or {}

    by_method = evaluation.curves[key]
    for number, (method, curve) in enumerate(by_method.items()):
        uses_of_colours, hue = divmod(number, len(METHOD_HUES))
        colour = METHOD_HUES[hue]
        style = DASHES[uses_of_colours % len(DASHES)]
        points = len(curve)
        if places:
            across = np.asarray(places[method])
            style = f"o{style}"
        elif counted or words:
            across = np.arange(1, points + 1)
        else:
            across = 100 * shares_of_curve(key, points)
        panel.plot(
            across,
            curve,
            style,
            color=colour,
            label=method,
            linewidth=LINE_WIDTH,
            markersize=MARKER_SIZE,
        )

    if key == "calibration_curve":
        panel.plot([0, 100], [0, 1], color=FAINT, linewidth=0.8, zorder=0)
    usual = "k, the first units" if counted else "k, % of the units"
    label = ACROSS.get(key, usual)
    panel.set_xlabel(label)
    if words:
        ticks = range(1, len(words) + 1)
        panel.set_xticks(ticks, words, rotation=60, ha="right", rotation_mode="anchor")
        panel.set_xlabel("")
        panel.set_ylabel("from each word alone")


# -- a number along the methods ------------------------------------------------------------------------------------


def draw_column_along_methods(
    panel: Axes, evaluation: Evaluation, key: str, axis: MethodAxis | None
) -> None:
    """A number of every method that has a position, with its interval; the others as levels."""
    cells = {method: evaluation.cell(method, key) for method in evaluation.methods}
    side_by_side = axis is None or cells.keys().isdisjoint(axis.positions)
    if axis is None or side_by_side:  # methods with nothing in common
        axis = axis_side_by_side(cells)
    positions = axis.positions
    positioned = [method for method in cells if method in positions]

    levels = levels_along_methods(axis, positioned, cells)
    draw_levels_of_curve(panel, levels, joined=not side_by_side)
    for method, cell in cells.items():
        if cell.value is None or method in positions:
            continue
        draw_level_line_of_method(panel, method, cell.value, levels)
    if axis.even:
        names = positioned
        if not side_by_side:
            names = [f"{positions[method]:g}" for method in positioned]
        draw_method_ticks(panel, names, slanted=axis.slanted)
    panel.set_xlabel(axis.label)


def axis_side_by_side(methods: Iterable[str]) -> MethodAxis:
    """Methods in their order, each under its name."""
    ranks = {}
    for rank, method in enumerate(methods):
        ranks[method] = float(rank)
    return MethodAxis("", ranks, even=True, slanted=True)


def draw_levels_of_curve(panel: Axes, levels: Sequence[CurveLevel], *, joined: bool) -> None:
    """Numbers with their intervals: a curve in a band, or dots on lines."""
    colour = METHOD_HUES[0]
    places = []
    values = []
    lows = []
    highs = []
    for level in levels:
        places.append(level.place)
        values.append(level.value)
        lows.append(level.low)
        highs.append(level.high)

    style = "o"
    if joined:
        style = "o-"
        panel.fill_between(places, lows, highs, color=colour, alpha=0.15, linewidth=0)
    else:
        panel.vlines(places, lows, highs, color=colour, linewidth=LINE_WIDTH)
    panel.plot(places, values, style, color=colour, markersize=MARKER_SIZE, linewidth=LINE_WIDTH)


def levels_along_methods(
    axis: MethodAxis, positioned: Sequence[str], cells: Mapping[str, Cell]
) -> list[CurveLevel]:
    """The numbers of the methods that have a position, where they are defined."""
    levels = []
    for rank, method in enumerate(positioned):
        cell = cells[method]
        if cell.value is None:
            continue
        place = float(axis.positions[method])
        if axis.even:
            place = float(rank)
        level = CurveLevel.of(place, cell.value, cell)
        levels.append(level)
    return levels


def draw_level_line_of_method(
    panel: Axes, method: str, value: float, levels: Sequence[CurveLevel]
) -> None:
    """A dashed line for a method without a position, named at the end where the curve is farther away."""
    panel.axhline(value, color=QUIET, linewidth=0.8, linestyle="--")
    points = [(level.place, level.value) for level in levels]
    points.sort()
    if not points:
        points = [(0.0, value)]
    first, first_value = points[0]
    last, last_value = points[-1]
    gap_to_first = abs(first_value - value)
    gap_to_last = abs(last_value - value)

    place = first
    if gap_to_last >= gap_to_first:
        place = last
    side = "left" if place == first else "right"
    at_the_end = (place, value)
    panel.annotate(method, at_the_end, ha=side, va="bottom", color=QUIET, fontsize="small")


def draw_method_ticks(panel: Axes, names: Sequence[str], *, slanted: bool) -> None:
    """Names below a panel, one for each place from 0 on."""
    labels = [name.replace("-", "−") for name in names]
    ticks = range(len(labels))
    if not slanted:
        panel.set_xticks(ticks, labels, fontsize="small")
        return
    panel.set_xticks(
        ticks, labels, fontsize="small", rotation=45, ha="right", rotation_mode="anchor"
    )
