"""The plots of an audit as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from raison.show.audit import AdversaryResult, AuditedText
from raison.show.html.document import safe_text

__all__ = ["adversaries_plot", "histogram", "words_plot"]

WIDE, HIGH, LEFT = 460, 150, 150  # of a plot, in pixels, and of the names beside it
BINS = 20
LARGEST_JSD = np.log(2)


@dataclass(frozen=True)
class Scales:
    """From numbers to pixels."""

    across: Callable[[float], float]
    down: Callable[[float], float]

    def point(self, x: float, y: float) -> str:
        return f"{self.across(x):.1f},{self.down(y):.1f}"

    def polyline(self, points: Sequence[tuple[float, float]], hue: int) -> str:
        joined = " ".join(self.point(x, y) for x, y in points)
        return f'<polyline class="m{hue}" stroke-width="2" points="{joined}"/>'

    def dot(self, x: float, y: float, hue: int, title: str) -> str:
        place = f'cx="{self.across(x):.1f}" cy="{self.down(y):.1f}" r="2.5"'
        return f'<circle class="m{hue}" stroke-width="2" {place}><title>{safe_text(title)}</title></circle>'


def histogram(label: str, values: Sequence[float], low: float, high: float) -> str:
    """How the numbers of all texts are spread; a line marks the mean."""

    def across(x: float) -> float:
        return 8 + (x - low) / (high - low) * (WIDE - 16)

    floor = HIGH - 20
    counts, edges = np.histogram(np.clip(values, low, high), BINS, (low, high))
    most = max(1, int(counts.max()))
    parts = []
    for count, start, stop in zip(counts, edges[:-1], edges[1:], strict=True):
        tall = (HIGH - 30) * count / most
        place = f'x="{across(start):.1f}" y="{floor - tall:.1f}"'
        size = f'width="{max(1.0, across(stop) - across(start) - 1):.1f}" height="{tall:.1f}"'
        parts.append(f'<rect class="m0" {place} {size}><title>{count}</title></rect>')
    mean = across(float(np.mean(values)))
    parts.append(f'<line class="m1" stroke-width="2" x1="{mean:.1f}" y1="4" x2="{mean:.1f}" y2="{floor}"/>')
    parts.append(f'<line class="axis" x1="8" y1="{floor}" x2="{WIDE - 8}" y2="{floor}"/>')
    for x, anchor in ((low, "start"), ((low + high) / 2, "middle"), (high, "end")):
        name = f"{round(x, 2) + 0:g}".replace("-", "−")  # + 0: no minus before a zero
        parts.append(f'<text x="{across(x):.1f}" y="{HIGH - 4}" text-anchor="{anchor}">{name}</text>')
    return figure(parts, f"{label}: mean {np.mean(values):.2f}, {len(values)} texts", HIGH)


def adversaries_plot(adversaries: Sequence[AdversaryResult]) -> str:
    """How far attention moves (JSD) against how far answers move (TVD), for each λ."""
    largest_tvd = max(0.05, *(adversary.tvd for adversary in adversaries))
    most = largest_tvd * 1.1
    scales = Scales(
        across=lambda jsd: LEFT / 3 + jsd / LARGEST_JSD * (WIDE - LEFT / 3 - 12),
        down=lambda tvd: 10 + (most - tvd) / most * (HIGH - 34),
    )
    floor = f"{scales.down(0):.1f}"
    parts = [f'<line class="axis" x1="{scales.across(0):.1f}" y1="{floor}" x2="{WIDE - 12}" y2="{floor}"/>']
    kinds = list(dict.fromkeys(adversary.kind for adversary in adversaries))
    for hue, kind in enumerate(kinds):
        points = sorted((each.jsd, each.tvd, each.lam) for each in adversaries if each.kind == kind)
        parts.append(scales.polyline([(jsd, tvd) for jsd, tvd, _ in points], hue))
        parts += [scales.dot(jsd, tvd, hue, f"λ = {lam:g}") for jsd, tvd, lam in points]
        for jsd, tvd, lam in points:
            parts.append(f'<text x="{scales.across(jsd) + 4:.1f}" y="{scales.down(tvd) - 4:.1f}">{lam:g}</text>')
    parts.append(f'<text x="{WIDE - 12}" y="{HIGH - 4}" text-anchor="end">JSD of attentions, at most 0.69</text>')
    parts.append(f'<text x="2" y="{scales.down(most / 1.1):.1f}">{most / 1.1:.2f}</text>')

    key = "".join(f'<li><i class="m{hue}"></i>{safe_text(kind)}</li>' for hue, kind in enumerate(kinds))
    caption = "How far answers move (TVD) where attention moves (JSD), for each λ"
    return f'<ul class="key">{key}</ul>{figure(parts, caption, HIGH)}'


def words_plot(text: AuditedText) -> str:
    """The probability of the answer from each word alone; nothing where that is not defined, or of one word."""
    count = len(text.probability)
    if count < 2:
        return ""
    scales = Scales(across=lambda word: 12 + word / (count - 1) * (WIDE - 36), down=lambda share: 8 + (1 - share) * 60)
    parts = []
    for level in (0.0, 0.5, 1.0):
        y = f"{scales.down(level):.1f}"
        parts.append(f'<line class="axis" x1="8" y1="{y}" x2="{WIDE - 20}" y2="{y}"/>')
    for level in (0.0, 1.0):
        parts.append(f'<text x="{WIDE - 2}" y="{scales.down(level) + 4:.1f}" text-anchor="end">{level:g}</text>')
    parts.append(scales.polyline(list(enumerate(text.probability)), 0))
    for word, (share, token) in enumerate(zip(text.probability, text.tokens, strict=True)):
        parts.append(scales.dot(word, share, 0, f"{token}: {share:.2f}"))
    return figure(parts, f"probability of {text.predicted} from each word alone", 80)


def figure(parts: Sequence[str], caption: str, high: int) -> str:
    size = f'viewBox="0 0 {WIDE} {high}" width="{WIDE}" height="{high}"'
    drawn = f'<svg {size} role="img" aria-label="{safe_text(caption)}">{"".join(parts)}</svg>'
    return f"<figure>{drawn}<figcaption>{safe_text(caption)}</figcaption></figure>"
