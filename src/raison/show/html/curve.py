"""The mean curves of methods as inline SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.evaluation import curve_title
from raison.show.figure.curves import shares_of
from raison.show.html.document import safe_text
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


def curve_figure(key: str, by_method: Mapping[str, Sequence[float]]) -> str:
    """The mean curve of each method over the share of units."""
    values = np.array(list(by_method.values()))
    frame = Frame.around(values)
    points = values.shape[1]
    shares = shares_of(key, points) if points > 1 else np.array([1.0])

    parts = axes(frame)
    for place, (method, curve) in enumerate(by_method.items()):
        line = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in zip(shares, curve, strict=True))
        title = f"<title>{safe_text(method)}</title>"
        parts.append(f'<polyline class="{line_class(place)}" stroke-width="2" points="{line}">{title}</polyline>')

    title = safe_text(curve_title(key))
    what = "randomised blocks" if key == "randomisation_curve" else "units"
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return (
        f'<figure><svg {size} role="img" aria-label="{title}">{"".join(parts)}</svg>'
        f"<figcaption>{title} by share of {what}</figcaption></figure>"
    )


def axes(frame: Frame) -> list[str]:
    """Lines at the lowest and the highest value, and the numbers of both axes."""
    ends = (frame.low, frame.high)
    lines, numbers = [], []
    for value in ends:
        y = frame.y(value)
        lines.append(f'<line class="axis" x1="{EDGE}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        shown = f"{round(value, 2) + 0:.2f}".replace("-", "−")  # + 0: no minus before a zero
        numbers.append(f'<text x="2" y="{y + 4:.1f}">{shown}</text>')
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        place = f'x="{frame.x(share):.1f}" y="{HEIGHT - 6}"'
        numbers.append(f'<text {place} text-anchor="{anchor}">{share:.0%}</text>')
    return lines + numbers
