"""What pictures are drawn on: inches from the upper left corner, widths of words, and colours."""

from __future__ import annotations

from typing import Any

from raison.show import scale

__all__ = ["ALARM", "FAINT", "HATCH", "INK", "KEPT", "MARGIN", "QUIET", "SMALL", "TEXT", "Ruler", "canvas"]

MARGIN = 0.3  # inches
TEXT, SMALL = 12.0, 9.0  # points
INK, QUIET, FAINT = "#1b1c1f", "#64666d", "#c9cacf"
KEPT, HATCH, ALARM = scale.hexadecimal(scale.FOR), "#a4520a", "#8a4b00"


def canvas(width: float, height: float, dpi: float = 100) -> tuple[Any, Any]:
    """A figure in inches, and axes over all of it that count inches from the upper left corner."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=dpi)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    return figure, axes


class Ruler:
    """Widths of words in inches, each measured once."""

    def __init__(self) -> None:
        self.figure, self.axes = canvas(1, 1, dpi=720)  # fine enough not to feel whole pixels
        self.known: dict[tuple[str, float, str], float] = {}

    def __call__(self, word: str, size: float, weight: str = "normal") -> float:
        key = (word, size, weight)
        if key not in self.known:
            text = self.axes.text(0, 0, word, fontsize=size, fontweight=weight)
            box = text.get_window_extent(self.figure.canvas.get_renderer())
            self.known[key] = box.width / self.figure.dpi
            text.remove()
        return self.known[key]
