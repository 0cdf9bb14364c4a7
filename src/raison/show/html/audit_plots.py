"""The plots of an audit as SVG: histograms, adversaries, and the probabilities of words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from raison.show.audit_rows import AdversaryResult, AuditedText
from raison.show.html.document import html_element, pixels_in_document, safe_html

__all__ = ["adversaries_svg", "histogram_svg", "words_svg"]

WIDE, HIGH, LEFT = 460, 150, 150  # of a plot, in pixels, and of the names beside it
BINS = 20
STROKE = 2  # pixels of a line
LARGEST_JSD = np.log(2)


@dataclass(frozen=True)
class PlotScales:
    """From numbers to pixels."""

    across: Callable[[float], float]
    down: Callable[[float], float]

    def place(self, x: float, y: float) -> tuple[str, str]:
        """Where a point stands, in pixels."""
        across = self.across(x)
        down = self.down(y)
        return pixels_in_document(across), pixels_in_document(down)

    def polyline(self, points: Iterable[tuple[float, float]], hue: int) -> str:
        """A line through some points."""
        places = []
        for x, y in points:
            across, down = self.place(x, y)
            places.append(f"{across},{down}")
        path = " ".join(places)
        return html_element("polyline", class_=f"m{hue}", stroke_width=STROKE, points=path)

    def dot(self, x: float, y: float, hue: int, title: str) -> str:
        """A point that tells its title."""
        safe_title = safe_html(title)
        tooltip = html_element("title", safe_title)
        across, down = self.place(x, y)
        return html_element(
            "circle", tooltip, class_=f"m{hue}", stroke_width=STROKE, cx=across, cy=down, r=2.5
        )


def histogram_svg(label: str, values: Sequence[float], low: float, high: float) -> str:
    """How the numbers of all texts are spread; a line marks the mean."""
    plot_width = WIDE - 16
    tallest = HIGH - 30
    floor = HIGH - 20

    def across(x: float) -> float:
        share = (x - low) / (high - low)
        return 8 + share * plot_width

    clipped = np.clip(values, low, high)
    counts, edges = np.histogram(clipped, BINS, (low, high))
    most = max(1, int(counts.max()))
    parts = []
    for place, count in enumerate(counts):
        left = across(edges[place])
        right = across(edges[place + 1])
        height = tallest * count / most
        bar = histogram_bar_svg(count, left, right, floor, height)
        parts.append(bar)

    mean = float(np.mean(values))
    at_mean = pixels_in_document(across(mean))
    mean_line = html_element(
        "line", class_="m1", stroke_width=STROKE, x1=at_mean, y1=4, x2=at_mean, y2=floor
    )
    parts.append(mean_line)
    floor_line = axis_line_svg("8", floor, WIDE - 8)
    parts.append(floor_line)

    label_height = HIGH - 4
    middle = (low + high) / 2
    anchors = {"start": low, "middle": middle, "end": high}
    for anchor, x in anchors.items():
        rounded = round(x, 2) + 0  # no minus before a zero
        name = f"{rounded:g}".replace("-", "−")
        place_of_name = pixels_in_document(across(x))
        label_of_place = label_svg(place_of_name, label_height, name, anchor)
        parts.append(label_of_place)

    count_of_texts = len(values)
    caption = f"{label}: mean {mean:.2f}, {count_of_texts} texts"
    return captioned_svg(parts, caption, HIGH)


def histogram_bar_svg(count: int, left: float, right: float, floor: int, height: float) -> str:
    """A bar that tells how many texts it stands for, a pixel away from the next one."""
    tooltip = html_element("title", str(count))
    top = floor - height
    width = max(1.0, right - left - 1)
    return html_element(
        "rect",
        tooltip,
        class_="m0",
        x=pixels_in_document(left),
        y=pixels_in_document(top),
        width=pixels_in_document(width),
        height=pixels_in_document(height),
    )


def adversaries_svg(adversaries: Sequence[AdversaryResult]) -> str:
    """How far attention moves (JSD) against how far answers move (TVD), for each λ."""
    largest_tvd = 0.05
    by_kind: dict[str, list[AdversaryResult]] = {}
    for adversary in adversaries:
        largest_tvd = max(largest_tvd, adversary.tvd)
        of_kind = by_kind.setdefault(adversary.kind, [])
        of_kind.append(adversary)

    most = largest_tvd * 1.1
    left = LEFT / 3
    right = WIDE - 12
    width = WIDE - left - 12
    room = HIGH - 34
    scales = PlotScales(
        across=lambda jsd: left + jsd / LARGEST_JSD * width,
        down=lambda tvd: 10 + (most - tvd) / most * room,
    )

    origin, floor = scales.place(0, 0)
    parts = [axis_line_svg(origin, floor, right)]
    key = ""
    for hue, (kind, of_kind) in enumerate(by_kind.items()):
        of_kind.sort(key=order_of_adversary)
        parts += adversaries_of_kind_svg(of_kind, scales, hue)
        sample = html_element("i", class_=f"m{hue}")
        name = safe_html(kind)
        key += html_element("li", sample, name)

    jsd_label = label_svg(right, HIGH - 4, "JSD of attentions, at most 0.69", "end")
    parts.append(jsd_label)
    shown_tvd = most / 1.1
    height_of_tvd = pixels_in_document(scales.down(shown_tvd))
    tvd_label = label_svg("2", height_of_tvd, f"{shown_tvd:.2f}")
    parts.append(tvd_label)

    legend = html_element("ul", key, class_="key")
    caption = "How far answers move (TVD) where attention moves (JSD), for each λ"
    return legend + captioned_svg(parts, caption, HIGH)


def order_of_adversary(adversary: AdversaryResult) -> tuple[float, float, float]:
    """Where an adversary stands on the line of its kind: from left to right, then upwards, then by λ."""
    return adversary.jsd, adversary.tvd, adversary.lam


def adversaries_of_kind_svg(
    adversaries: Sequence[AdversaryResult], scales: PlotScales, hue: int
) -> Iterator[str]:
    """A line through all λ of one kind, then dots, then their names."""
    points = []
    for adversary in adversaries:
        point = (adversary.jsd, adversary.tvd)
        points.append(point)
    yield scales.polyline(points, hue)

    for adversary in adversaries:
        title = f"λ = {adversary.lam:g}"
        yield scales.dot(adversary.jsd, adversary.tvd, hue, title)
    for adversary in adversaries:
        across = scales.across(adversary.jsd) + 4
        down = scales.down(adversary.tvd) - 4
        name = f"{adversary.lam:g}"
        yield label_svg(pixels_in_document(across), pixels_in_document(down), name)


def words_svg(text: AuditedText) -> str:
    """The probability of the answer from each word alone; nothing where that is not defined, or of one word."""
    shares = text.probability
    last = len(shares) - 1
    if last < 1:
        return ""
    width = WIDE - 36
    scales = PlotScales(
        across=lambda word: 12 + word / last * width,
        down=lambda share: 8 + (1 - share) * 60,
    )

    parts = []
    right = WIDE - 20
    for level in (0.0, 0.5, 1.0):
        height = pixels_in_document(scales.down(level))
        level_line = axis_line_svg("8", height, right)
        parts.append(level_line)
    end_of_names = WIDE - 2
    for level in (0.0, 1.0):
        baseline = pixels_in_document(scales.down(level) + 4)
        name = f"{level:g}"
        level_name = label_svg(end_of_names, baseline, name, "end")
        parts.append(level_name)

    line = scales.polyline(enumerate(shares), 0)
    parts.append(line)
    for word, share in enumerate(shares):
        token = text.tokens[word]
        title = f"{token}: {share:.2f}"
        dot = scales.dot(word, share, 0, title)
        parts.append(dot)
    caption = f"probability of {text.predicted} from each word alone"
    return captioned_svg(parts, caption, 80)


# -- SVG -----------------------------------------------------------------------------------------------------------


def axis_line_svg(left: str, down: str | int, right: int) -> str:
    """A horizontal line, in pixels."""
    return html_element("line", class_="axis", x1=left, y1=down, x2=right, y2=down)


def label_svg(across: str | int, down: str | int, text: str, anchor: str = "") -> str:
    """Small print at a place, in pixels; `anchor` says which end of it stands there."""
    if anchor:
        return html_element("text", text, x=across, y=down, text_anchor=anchor)
    return html_element("text", text, x=across, y=down)


def captioned_svg(parts: Sequence[str], caption: str, high: int) -> str:
    """A drawing with its caption."""
    label = safe_html(caption)
    drawing = html_element(
        "svg",
        *parts,
        viewBox=f"0 0 {WIDE} {high}",
        width=WIDE,
        height=high,
        role="img",
        aria_label=label,
    )
    figcaption = html_element("figcaption", label)
    return html_element("figure", drawing, figcaption)
