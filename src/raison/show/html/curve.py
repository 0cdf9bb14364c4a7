"""The mean curves of methods as inline SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.evaluation import curve_title
from raison.show.figure.curves import shares_of
from raison.show.html.document import element, safe_text
from raison.show.scale import HUES

__all__ = ["curve_figure", "line_class"]

WIDTH, HEIGHT, EDGE = 420, 220, 36  # pixels; the edge holds the numbers at the left and below
TOP, RIGHT = 8, 8  # pixels that stay free


def line_class(place: int) -> str:
    """The class of a method's colour: one hue per method, told apart by lightness too."""
    return f"m{place % len(HUES)}"


@dataclass(frozen=True)
class Frame:
    """Where numbers stand in a picture whose axes go from 0 to 1 and from `low` to `high`."""

    low: float
    high: float

    @classmethod
    def around(cls, values: np.ndarray) -> Frame:
        """A frame that holds all values and 0."""
        low, high = float(min(0.0, values.min())), float(max(0.0, values.max()))
        return cls(low, high if high > low else low + 1)

    def x(self, share: float) -> float:
        return EDGE + share * (WIDTH - EDGE - RIGHT)

    def y(self, value: float) -> float:
        return TOP + (self.high - value) / (self.high - self.low) * (HEIGHT - EDGE)

    def points(self, shares: Iterable[float], values: Iterable[float]) -> str:
        """A line through these points."""
        places = [
            f"{self.x(share):.1f},{self.y(value):.1f}"
            for share, value in zip(shares, values, strict=True)
        ]
        return " ".join(places)


def curve_figure(key: str, by_method: Mapping[str, Sequence[float]]) -> str:
    """The mean curve of each method over the share of units."""
    values = np.array(list(by_method.values()))
    frame = Frame.around(values)
    points = values.shape[1]
    shares = shares_of(key, points) if points > 1 else np.array([1.0])

    parts = axes(frame)
    for place, (method, curve) in enumerate(by_method.items()):
        title = element("title", safe_text(method))
        line = frame.points(shares, curve)
        parts.append(
            element("polyline", title, class_=line_class(place), stroke_width=2, points=line)
        )

    title = safe_text(curve_title(key))
    picture = element(
        "svg",
        *parts,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        width=WIDTH,
        height=HEIGHT,
        role="img",
        aria_label=title,
    )
    what = "randomised blocks" if key == "randomisation_curve" else "units"
    return element("figure", picture, element("figcaption", f"{title} by share of {what}"))


def axes(frame: Frame) -> list[str]:
    """Lines at the lowest and the highest value, and the numbers of both axes."""
    ends = (frame.low, frame.high)
    lines, numbers = [], []
    for value in ends:
        y = frame.y(value)
        lines.append(
            element("line", class_="axis", x1=EDGE, y1=f"{y:.1f}", x2=WIDTH - RIGHT, y2=f"{y:.1f}")
        )
        shown = f"{round(value, 2) + 0:.2f}".replace("-", "−")  # + 0: no minus before a zero
        numbers.append(element("text", shown, x=2, y=f"{y + 4:.1f}"))
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        x = f"{frame.x(share):.1f}"
        numbers.append(element("text", f"{share:.0%}", x=x, y=HEIGHT - 6, text_anchor=anchor))
    return lines + numbers
