"""The plots of an audit as SVG: histograms, adversaries, and the probabilities of words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from raison.show.audit_rows import AdversaryResult, AuditedText
from raison.show.html.document import html_element, pixels_in_document, safe_html

__all__ = ["adversaries_svg", "histogram_svg", "words_svg"]

WIDE, HIGH, LEFT = 460, 150, 150  # of a plot, in pixels, and of the names beside it
BINS = 20
LARGEST_JSD = np.log(2)


@dataclass(frozen=True)
class PlotScales:
    """From numbers to pixels."""

    across: Callable[[float], float]
    down: Callable[[float], float]

    def polyline(self, points: Sequence[tuple[float, float]], hue: int) -> str:
        """A line through some points."""
        places = []
        for x, y in points:
            across, down = pixels_in_document(self.across(x)), pixels_in_document(self.down(y))
            places.append(f"{across},{down}")
        return html_element("polyline", class_=f"m{hue}", stroke_width=2, points=" ".join(places))

    def dot(self, x: float, y: float, hue: int, title: str) -> str:
        """A point that tells its title."""
        return html_element(
            "circle",
            html_element("title", safe_html(title)),
            class_=f"m{hue}",
            stroke_width=2,
            cx=pixels_in_document(self.across(x)),
            cy=pixels_in_document(self.down(y)),
            r=2.5,
        )


def histogram_svg(label: str, values: Sequence[float], low: float, high: float) -> str:
    """How the numbers of all texts are spread; a line marks the mean."""

    def across(x: float) -> float:
        share = (x - low) / (high - low)
        return 8 + share * (WIDE - 16)

    floor = HIGH - 20
    counts, edges = np.histogram(np.clip(values, low, high), BINS, (low, high))
    most = max(1, int(counts.max()))
    parts = []
    for count, start, stop in zip(counts, edges[:-1], edges[1:], strict=True):
        left, right = across(start), across(stop)
        tall = (HIGH - 30) * count / most
        bar = html_element(
            "rect",
            html_element("title", str(count)),
            class_="m0",
            x=pixels_in_document(left),
            y=pixels_in_document(floor - tall),
            width=pixels_in_document(max(1.0, right - left - 1)),
            height=pixels_in_document(tall),
        )
        parts.append(bar)

    mean = float(np.mean(values))
    line = pixels_in_document(across(mean))
    parts.append(
        html_element("line", class_="m1", stroke_width=2, x1=line, y1=4, x2=line, y2=floor)
    )
    parts.append(axis_line_svg("8", floor, WIDE - 8))
    middle = (low + high) / 2
    for x, anchor in ((low, "start"), (middle, "middle"), (high, "end")):
        rounded = round(x, 2) + 0  # no minus before a zero
        name = f"{rounded:g}".replace("-", "−")
        parts.append(label_svg(pixels_in_document(across(x)), HIGH - 4, name, anchor))
    return captioned_svg(parts, f"{label}: mean {mean:.2f}, {len(values)} texts", HIGH)


def adversaries_svg(adversaries: Sequence[AdversaryResult]) -> str:
    """How far attention moves (JSD) against how far answers move (TVD), for each λ."""
    largest_tvd = max(0.05, *(adversary.tvd for adversary in adversaries))
    most = largest_tvd * 1.1
    left, room = LEFT / 3, HIGH - 34
    width = WIDE - left - 12
    scales = PlotScales(
        across=lambda jsd: left + jsd / LARGEST_JSD * width,
        down=lambda tvd: 10 + (most - tvd) / most * room,
    )
    by_kind: dict[str, list[AdversaryResult]] = {}
    for adversary in adversaries:
        by_kind.setdefault(adversary.kind, []).append(adversary)

    origin = pixels_in_document(scales.across(0))
    floor = pixels_in_document(scales.down(0))
    parts = [axis_line_svg(origin, floor, WIDE - 12)]
    key = ""
    for hue, (kind, of_kind) in enumerate(by_kind.items()):
        of_kind.sort(key=lambda adversary: (adversary.jsd, adversary.tvd, adversary.lam))
        parts += adversaries_of_kind_svg(of_kind, scales, hue)
        sample = html_element("i", class_=f"m{hue}")
        key += html_element("li", sample, safe_html(kind))
    parts.append(label_svg(WIDE - 12, HIGH - 4, "JSD of attentions, at most 0.69", "end"))
    shown_tvd = most / 1.1
    parts.append(label_svg("2", pixels_in_document(scales.down(shown_tvd)), f"{shown_tvd:.2f}"))

    caption = "How far answers move (TVD) where attention moves (JSD), for each λ"
    return html_element("ul", key, class_="key") + captioned_svg(parts, caption, HIGH)


def adversaries_of_kind_svg(
    adversaries: Sequence[AdversaryResult], scales: PlotScales, hue: int
) -> Iterator[str]:
    """A line through all λ of one kind, then dots, then their names."""
    yield scales.polyline([(adversary.jsd, adversary.tvd) for adversary in adversaries], hue)
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
    count = len(text.probability)
    if count < 2:
        return ""
    width = WIDE - 36
    scales = PlotScales(
        across=lambda word: 12 + word / (count - 1) * width,
        down=lambda share: 8 + (1 - share) * 60,
    )
    parts = []
    for level in (0.0, 0.5, 1.0):
        parts.append(axis_line_svg("8", pixels_in_document(scales.down(level)), WIDE - 20))
    for level in (0.0, 1.0):
        down = scales.down(level) + 4
        name = f"{level:g}"
        parts.append(label_svg(WIDE - 2, pixels_in_document(down), name, "end"))
    parts.append(scales.polyline(list(enumerate(text.probability)), 0))
    for word, share in enumerate(text.probability):
        title = f"{text.tokens[word]}: {share:.2f}"
        parts.append(scales.dot(word, share, 0, title))
    return captioned_svg(parts, f"probability of {text.predicted} from each word alone", 80)


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
    return html_element("figure", drawing, html_element("figcaption", label))
