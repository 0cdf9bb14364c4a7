"""The plots of an audit as SVG: histograms, adversaries, and the probabilities of words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from raison.show.audit_rows import AdversaryResult, AuditedText
from raison.show.html.document import safe_html

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
            places.append(f"{self.across(x):.1f},{self.down(y):.1f}")
        return f'<polyline class="m{hue}" stroke-width="2" points="{" ".join(places)}"/>'

    def dot(self, x: float, y: float, hue: int, title: str) -> str:
        """A point that tells its title."""
        place = f'cx="{self.across(x):.1f}" cy="{self.down(y):.1f}" r="2.5"'
        return f'<circle class="m{hue}" stroke-width="2" {place}><title>{safe_html(title)}</title></circle>'


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
        tall = (HIGH - 30) * count / most
        top = floor - tall
        left = across(start)
        wide = max(1.0, across(stop) - left - 1)
        place = f'x="{left:.1f}" y="{top:.1f}"'
        size = f'width="{wide:.1f}" height="{tall:.1f}"'
        parts.append(f'<rect class="m0" {place} {size}><title>{count}</title></rect>')

    mean = float(np.mean(values))
    line = f"{across(mean):.1f}"
    parts.append(f'<line class="m1" stroke-width="2" x1="{line}" y1="4" x2="{line}" y2="{floor}"/>')
    parts.append(axis_line_svg("8", floor, WIDE - 8))
    middle = (low + high) / 2
    for x, anchor in ((low, "start"), (middle, "middle"), (high, "end")):
        rounded = round(x, 2) + 0  # no minus before a zero
        name = f"{rounded:g}".replace("-", "−")
        parts.append(label_svg(f"{across(x):.1f}", HIGH - 4, name, anchor))
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

    origin = f"{scales.across(0):.1f}"
    floor = f"{scales.down(0):.1f}"
    parts = [axis_line_svg(origin, floor, WIDE - 12)]
    key = ""
    for hue, (kind, of_kind) in enumerate(by_kind.items()):
        of_kind.sort(key=lambda adversary: (adversary.jsd, adversary.tvd, adversary.lam))
        parts += adversaries_of_kind_svg(of_kind, scales, hue)
        key += f'<li><i class="m{hue}"></i>{safe_html(kind)}</li>'
    parts.append(label_svg(WIDE - 12, HIGH - 4, "JSD of attentions, at most 0.69", "end"))
    shown_tvd = most / 1.1
    parts.append(label_svg("2", f"{scales.down(shown_tvd):.1f}", f"{shown_tvd:.2f}"))

    caption = "How far answers move (TVD) where attention moves (JSD), for each λ"
    return f'<ul class="key">{key}</ul>{captioned_svg(parts, caption, HIGH)}'


def adversaries_of_kind_svg(
    adversaries: Sequence[AdversaryResult], scales: PlotScales, hue: int
) -> Iterator[str]:
    """A line through all λ of one kind, then dots, then their names."""
    yield scales.polyline([(adversary.jsd, adversary.tvd) for adversary in adversaries], hue)
    for adversary in adversaries:
        yield scales.dot(adversary.jsd, adversary.tvd, hue, f"λ = {adversary.lam:g}")
    for adversary in adversaries:
        across = scales.across(adversary.jsd) + 4
        down = scales.down(adversary.tvd) - 4
        yield label_svg(f"{across:.1f}", f"{down:.1f}", f"{adversary.lam:g}")


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
        parts.append(axis_line_svg("8", f"{scales.down(level):.1f}", WIDE - 20))
    for level in (0.0, 1.0):
        down = scales.down(level) + 4
        parts.append(label_svg(WIDE - 2, f"{down:.1f}", f"{level:g}", "end"))
    parts.append(scales.polyline(list(enumerate(text.probability)), 0))
    for word, (share, token) in enumerate(zip(text.probability, text.tokens, strict=True)):
        parts.append(scales.dot(word, share, 0, f"{token}: {share:.2f}"))
    return captioned_svg(parts, f"probability of {text.predicted} from each word alone", 80)


# -- SVG -----------------------------------------------------------------------------------------------------------


def axis_line_svg(left: str, down: str | int, right: int) -> str:
    """A horizontal line, in pixels."""
    return f'<line class="axis" x1="{left}" y1="{down}" x2="{right}" y2="{down}"/>'


def label_svg(across: str | int, down: str | int, text: str, anchor: str = "") -> str:
    """Small print at a place, in pixels; `anchor` says which end of it stands there."""
    anchored = ""
    if anchor:
        anchored = f' text-anchor="{anchor}"'
    return f'<text x="{across}" y="{down}"{anchored}>{text}</text>'


def captioned_svg(parts: Sequence[str], caption: str, high: int) -> str:
    """A drawing with its caption."""
    size = f'viewBox="0 0 {WIDE} {high}" width="{WIDE}" height="{high}"'
    label = safe_html(caption)
    inside = "".join(parts)
    drawn = f'<svg {size} role="img" aria-label="{label}">{inside}</svg>'
    return f"<figure>{drawn}<figcaption>{label}</figcaption></figure>"
