"""The canvas of pictures: figures in inches from the upper left corner, headers, widths of words, colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from raison.show.colour_scale import FOR_TARGET, hexadecimal_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "ALARM",
    "FAINT",
    "HATCH",
    "INK",
    "KEPT",
    "MARGIN",
    "NOTE",
    "QUIET",
    "SMALL",
    "TEXT",
    "WordRuler",
    "draw_figure_header",
    "draw_small_print_on_canvas",
    "empty_figure",
    "figure_canvas",
    "hide_panel_frame_in_picture",
]

MARGIN = 0.3  # inches
# points
TEXT = 12.0
SMALL = 9.0
NOTE = 8.0
INK, QUIET, FAINT = "#1b1c1f", "#64666d", "#c9cacf"
KEPT, HATCH, ALARM = hexadecimal_colour(FOR_TARGET), "#a4520a", "#8a4b00"


def empty_figure(
    width: float, height: float, *, dpi: float | None = None, layout: str | None = None
) -> Figure:
    """A matplotlib figure in inches that needs no window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=dpi, layout=layout)  # type: ignore[arg-type]  # stubs want literals
    FigureCanvasAgg(figure)
    return figure


def figure_canvas(width: float, height: float, dpi: float = 100) -> tuple[Figure, Axes]:
    """A figure in inches, and axes over all of it that count inches from the upper left corner."""
    figure = empty_figure(width, height, dpi=dpi)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    return figure, axes


def hide_panel_frame_in_picture(axes: Axes, sides: Sequence[str] = ("top", "right")) -> None:
    """Leave out the lines around a panel that carry no numbers."""
    for side in sides:
        axes.spines[side].set_visible(False)


def draw_figure_header(axes: Axes, title: str, notes: Sequence[tuple[str, str]]) -> None:
    """A bold title in the upper left corner, and below it lines of small print with their colours."""
    axes.text(MARGIN, MARGIN + 0.12, title, fontsize=TEXT, fontweight="bold", color=INK)
    for number, (line, colour) in enumerate(notes):
        axes.text(MARGIN, MARGIN + 0.33 + 0.19 * number, line, fontsize=NOTE, color=colour)


def draw_small_print_on_canvas(axes: Axes, across: float, baseline: float, text: str) -> None:
    """Quiet words at a place."""
    axes.text(across, baseline, text, fontsize=NOTE, color=QUIET)


class WordRuler:
    """Widths of words in inches, each measured once."""

    def __init__(self) -> None:
        self.figure, self.axes = figure_canvas(
            1, 1, dpi=720
        )  # fine enough not to feel whole pixels
        self.known: dict[tuple[str, float, str], float] = {}

    def __call__(self, word: str, size: float, weight: str = "normal") -> float:
        key = (word, size, weight)
        if key not in self.known:
            text = self.axes.text(0, 0, word, fontsize=size, fontweight=weight)
            box = text.get_window_extent()
            self.known[key] = box.width / self.figure.dpi
            text.remove()
        return self.known[key]

    def widest(self, lines: Sequence[str], size: float, weight: str = "normal") -> float:
        """The width of the longest of some lines; 0 where there is none."""
        return max((self(line, size, weight) for line in lines), default=0.0)
