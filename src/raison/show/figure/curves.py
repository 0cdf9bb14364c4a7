"""Curves of an evaluation as a picture: methods over the share of units, or one number along the methods."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from raison.core.evaluation import Evaluation, MethodAxis, curve_title
from raison.show.figure.canvas import FAINT, QUIET
from raison.show.figure.savefig import press
from raison.show.scale import HUES

__all__ = ["draw_curves", "shares_of"]

WIDE, HIGH, KEY = 3.6, 2.7, 1.7  # inches: of a panel, and of the names beside the last
A_WORD = 0.19  # inches that a word takes below a panel
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


def draw_curves(
    evaluation: Evaluation,
    keys: tuple[str, ...],
    path: str | os.PathLike[str],
    *,
    axis: MethodAxis | None = None,
) -> None:
    """One panel for each key: a curve (`aopc_curve`) of every method, or a column (`aopc`) along the methods.

    `axis` says where methods stand below a column; without it they stand side by side.
    """

    def drawn() -> Any:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        named = any(key in evaluation.curves for key in keys)
        wide = max(WIDE, A_WORD * len(evaluation.settings.get("words") or ()))
        figure = Figure(figsize=(wide * len(keys) + (KEY if named else 0), HIGH), layout="constrained")
        FigureCanvasAgg(figure)
        panels: list[Any] = []
        for k, key in enumerate(keys):  # what is of one kind (tau_words, tau_states) is seen on one scale
            like = next((axes for axes, other in zip(panels, keys, strict=False) if kind(other) == kind(key)), None)
            axes = figure.add_subplot(1, len(keys), k + 1, sharey=like)
            panels.append(axes)
            if key in evaluation.curves:
                by_share(axes, evaluation, key)
            else:
                along(axes, evaluation, key, axis)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
            axes.set_title(curve_title(key), loc="left", fontsize="medium")
        if named:
            figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
        return figure

    press(drawn, path)


def kind(key: str) -> str:
    return key.partition("_")[0]


def shares_of(key: str, points: int) -> np.ndarray:
    """[points] the share of units at each point of a curve; some have a point at nothing, others begin later."""
    if key in WITHOUT_POINT_AT_NOTHING:
        return np.arange(1, points + 1) / points
    return np.linspace(0, 1, points)


def by_share(axes: Any, evaluation: Evaluation, key: str) -> None:
    """The mean curve of each method; those of the first k units have a point for each k."""
    counted = key in BY_FIRST_UNITS
    words = evaluation.settings.get("words") if key == "alone_curve" else None
    placed = evaluation.settings.get("across", {}).get(key)
    for k, (method, curve) in enumerate(evaluation.curves[key].items()):
        style = DASHES[k // len(HUES) % len(DASHES)]
        across = np.arange(1, len(curve) + 1) if counted or words else 100 * shares_of(key, len(curve))
        if placed:
            across, style = placed[method], f"o{style}"
        axes.plot(across, curve, style, color=HUES[k % len(HUES)], label=method, linewidth=1.4, markersize=3)
    if key == "calibration_curve":
        axes.plot([0, 100], [0, 1], color=FAINT, linewidth=0.8, zorder=0)
    usual = "k, the first units" if counted else "k, % of the units"
    axes.set_xlabel(ACROSS.get(key, usual))
    if words:
        axes.set_xticks(range(1, len(words) + 1), words, rotation=60, ha="right", rotation_mode="anchor")
        axes.set_xlabel("")
        axes.set_ylabel("from each word alone")


def along(axes: Any, evaluation: Evaluation, key: str, axis: MethodAxis | None) -> None:
    """A number of every method that has a position, with its interval; the others as levels."""
    cells = {method: evaluation.cell(method, key) for method in evaluation.methods}
    plain = axis is None or not set(axis.positions) & set(cells)
    if axis is None or plain:  # methods with nothing in common: side by side
        axis = MethodAxis("", {method: place for place, method in enumerate(cells)}, even=True, slanted=True)
    placed = [method for method in cells if method in axis.positions]
    if axis.even:
        places = {method: float(place) for place, method in enumerate(placed)}
    else:
        places = {method: float(axis.positions[method]) for method in placed}
    points = [(place, cells[method]) for method, place in places.items() if cells[method].value is not None]
    x = [place for place, _ in points]
    middle = [c.value for _, c in points]
    low, high = ([c.value if c.low is None else getattr(c, end) for _, c in points] for end in ("low", "high"))
    if plain:
        axes.vlines(x, low, high, color=HUES[0], linewidth=1.4)
    else:
        axes.fill_between(x, low, high, color=HUES[0], alpha=0.15, linewidth=0)
    axes.plot(x, middle, "o" if plain else "o-", color=HUES[0], markersize=3, linewidth=1.4)
    for method, cell in cells.items():
        if method not in places and cell.value is not None:
            axes.axhline(cell.value, color=QUIET, linewidth=0.8, linestyle="--")
            ends = sorted(zip(x, middle, strict=True)) or [(0.0, cell.value)]
            away = lambda end, level=cell.value: abs(end[1] - level)  # noqa: E731
            place = max((ends[-1], ends[0]), key=away)[0]  # where the curve is not in the way
            side = "left" if place == ends[0][0] else "right"
            axes.annotate(method, (place, cell.value), ha=side, va="bottom", color=QUIET, fontsize="small")
    if axis.even:
        names = placed if plain else [f"{axis.positions[method]:g}" for method in placed]
        slant = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if axis.slanted else {}
        axes.set_xticks(range(len(placed)), [name.replace("-", "−") for name in names], fontsize="small", **slant)
    axes.set_xlabel(axis.label)
