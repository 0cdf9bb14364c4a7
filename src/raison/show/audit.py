"""An audit of attention: in the terminal, and as one page with the plots of the papers and a verdict in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from raison.show.html.evaluation import STYLE, paints, say, sheet
from raison.show.scale import HUES
from raison.show.scoreboard import warning_of_few
from raison.show.wording import clean

__all__ = ["audit_page", "render_audit"]

WIDE, HIGH, LEFT = 460, 150, 150  # of a plot, in pixels, and of the names beside it
BINS = 20
TITLES = {
    "agreement": "Agreement of attention with importance (Kendall's τ-b; P2 Figures 1 and 4, Table 6)",
    "entropy": "Entropy, from 0 (one word) to 1 (all words alike; P2 Figure 2, Table 1)",
}


def rows_of(found: Any) -> Iterator[tuple[str, str, str]]:
    """What was measured, its value, and what it is about."""
    yield "accuracy", f"{found.accuracy:.3f}", f"{found.count} texts of {found.data}"
    defined = np.isfinite(found.f1)
    about_f1 = f"of {found.f1_of}" if found.f1_of else ""
    yield "F1", f"{found.f1:.3f}" if defined else "–", about_f1 if defined else f"not defined: no text is {found.f1_of}"
    for name, row in found.replaced.by_title().items():
        times = f", mean of {row.versions}" if row.versions > 1 else ""
        if defined:
            yield f"F1 with {name} attention", f"{row.f1:.3f}", f"{falls(row.f1_drop)}{times}"
        yield f"accuracy with {name} attention", f"{row.accuracy:.3f}", f"{falls(row.accuracy_drop)}{times}"
    for name, spread in found.agreement.by_title().items():
        yield f"τ-b with {name}", number(spread), about(spread)
    for name, spread in found.entropy.by_title().items():
        yield f"entropy of {name}", number(spread), about(spread)
    if found.token_probability is not None:
        yield (
            "probability of the answer from a word alone",
            number(found.token_probability),
            about(found.token_probability),
        )
    for name, information in found.information.by_title().items():
        chance = f"{information.bias:.2f} if shuffled; {information.pairs} pairs, {information.k} clusters"
        yield f"information of states about words, {name}", f"{information.value:.2f} nats", chance
    if found.instance is not None:
        yield "largest JSD with the same answer", number(found.instance), about(found.instance)
    for each in found.adversaries:
        reached = f"accuracy {each.accuracy:.3f}, answers move by {each.tvd:.3f} (TVD)"
        yield f"adversary, {each.kind}, λ = {each.lam:g}", f"JSD {each.jsd:.3f}", reached


def falls(drop: float) -> str:
    points = round(100 * drop, 1)
    return f"falls by {points:.1f} points" if points > 0 else f"rises by {-points:.1f} points" if points else "the same"


def number(spread: Any) -> str:
    if not spread.count:
        return "–"
    return f"{spread.mean:.3f} ± {spread.deviation:.3f}" if spread.count > 1 else f"{spread.mean:.3f}"


def about(spread: Any) -> str:
    left = f"; not defined for {spread.left_out}" if spread.left_out else ""
    if spread.count < 2:
        return f"one text{left}" if spread.count else left[2:]
    return f"{spread.low:.3f} … {spread.high:.3f}, {spread.count} texts{left}"


def render_audit(found: Any, console: Console) -> None:
    """The verdict first, then the numbers that carry it."""
    *reasons, verdict = found.verdict()
    console.print(Text(clean(verdict), style="bold"))
    for reason in reasons:
        console.print(Text(f"  {clean(reason)}"))
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    table.add_column(clean(f"{found.model} on {found.data}"))
    table.add_column("", justify="right")
    table.add_column("")
    for name, value, more in rows_of(found):
        table.add_row(clean(name), value, Text(clean(more), style="dim"))
    console.print()
    console.print(table)
    for note in [*found.notes, *warning_of_few(found.count)]:
        console.print(Text(clean(note), style="dim"))


def audit_page(found: Any) -> str:
    """The whole page."""
    title = f"Can the attention of {found.model} be trusted?"
    *reasons, verdict = found.verdict()
    body = [f"<h1>{say(title)}</h1>", f"<p><strong>{say(verdict)}</strong></p>", "<ul>"]
    body += [f"<li>{say(reason)}</li>" for reason in reasons]
    body += [
        "</ul>",
        '<div class="scroll"><table><tr><th>measured</th><th>value (± deviation)</th>'
        "<th>interval of the mean (95 %), texts</th></tr>",
    ]
    body += [
        f"<tr><td>{say(name)}</td><td>{say(value)}</td><td>{say(more)}</td></tr>"
        for name, value, more in rows_of(found)
    ]
    body.append("</table></div>")
    for name in ("agreement", "entropy"):
        spreads = getattr(found, name).by_title()
        low = -1.0 if name == "agreement" else 0.0
        body += [f"<h2>{say(TITLES[name])}</h2>", '<div class="curves">']
        body += [histogram(label, spread.values, low, 1.0) for label, spread in spreads.items() if spread.count > 1]
        body.append("</div>")
    if found.instance is not None and found.instance.count > 1:
        body += ["<h2>Other attention, the same answer (Jain &amp; Wallace 2019)</h2>", '<div class="curves">']
        body += [
            histogram("largest JSD of an attention with the same answer", found.instance.values, 0.0, float(np.log(2)))
        ]
        body.append("</div>")
    if found.adversaries:
        body += ["<h2>Trained adversaries (P2 Table 5, P3 Figure 1)</h2>", frontier(found.adversaries)]
    if found.texts:
        body.append("<h2>Texts, word by word (P3 Figures 2 to 7)</h2>")
        drawn = any(len(each.probability) > 1 for each in found.texts)
        line = " Line: the probability of the answer from each word alone, from 0 to 1." if drawn else ""
        body.append(f'<p class="note">Colour: attention.{line}</p>')
        body += [told(each) for each in found.texts]
    body += [f'<p class="note">{say(note)}</p>' for note in [*found.notes, *warning_of_few(found.count)]]
    colours = {str(k): hue for k, hue in enumerate(HUES)}
    rules = STYLE + "".join(paints(colours)) + "svg rect.m0 { fill: " + HUES[0] + "; stroke: none; }\n"
    rules += "figure { margin: 0.5rem 0; } figure svg { max-width: 100%; height: auto; }\n"
    return sheet(title, rules, body)


def histogram(label: str, values: Sequence[float], low: float, high: float) -> str:
    """How the numbers of all texts are spread; a line marks the mean."""
    counts, edges = np.histogram(np.clip(values, low, high), BINS, (low, high))
    most = max(1, int(counts.max()))
    across = lambda x: 8 + (x - low) / (high - low) * (WIDE - 16)  # noqa: E731
    parts = []
    for count, start, stop in zip(counts, edges[:-1], edges[1:], strict=True):
        tall = (HIGH - 30) * count / most
        place = f'x="{across(start):.1f}" y="{HIGH - 20 - tall:.1f}"'
        size = f'width="{max(1.0, across(stop) - across(start) - 1):.1f}" height="{tall:.1f}"'
        parts.append(f'<rect class="m0" {place} {size}><title>{count}</title></rect>')
    mean = across(float(np.mean(values)))
    parts.append(f'<line class="m1" stroke-width="2" x1="{mean:.1f}" y1="4" x2="{mean:.1f}" y2="{HIGH - 20}"/>')
    parts.append(f'<line class="axis" x1="8" y1="{HIGH - 20}" x2="{WIDE - 8}" y2="{HIGH - 20}"/>')
    for x, anchor in ((low, "start"), ((low + high) / 2, "middle"), (high, "end")):
        name = f"{round(x, 2) + 0:g}".replace("-", "−")
        parts.append(f'<text x="{across(x):.1f}" y="{HIGH - 4}" text-anchor="{anchor}">{name}</text>')
    return figure(parts, f"{label}: mean {np.mean(values):.2f}, {len(values)} texts", HIGH)


def frontier(adversaries: Sequence[Any]) -> str:
    """How far attention moves (JSD) against how far answers move (TVD), for each λ."""
    most = max(0.05, *(each.tvd for each in adversaries)) * 1.1
    across = lambda x: LEFT / 3 + x / np.log(2) * (WIDE - LEFT / 3 - 12)  # noqa: E731
    down = lambda y: 10 + (most - y) / most * (HIGH - 34)  # noqa: E731
    parts = [f'<line class="axis" x1="{across(0):.1f}" y1="{down(0):.1f}" x2="{WIDE - 12}" y2="{down(0):.1f}"/>']
    kinds = list(dict.fromkeys(each.kind for each in adversaries))
    for k, kind in enumerate(kinds):
        points = sorted((each.jsd, each.tvd, each.lam) for each in adversaries if each.kind == kind)
        line = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y, _ in points)
        parts.append(f'<polyline class="m{k}" stroke-width="2" points="{line}"/>')
        parts += [dot(across(x), down(y), k, f"λ = {lam:g}") for x, y, lam in points]
        parts += [f'<text x="{across(x) + 4:.1f}" y="{down(y) - 4:.1f}">{lam:g}</text>' for x, y, lam in points]
    parts.append(f'<text x="{WIDE - 12}" y="{HIGH - 4}" text-anchor="end">JSD of attentions, at most 0.69</text>')
    parts.append(f'<text x="2" y="{down(most / 1.1):.1f}">{most / 1.1:.2f}</text>')
    key = "".join(f'<li><i class="m{k}"></i>{say(kind)}</li>' for k, kind in enumerate(kinds))
    caption = "How far answers move (TVD) where attention moves (JSD), for each λ"
    return f'<ul class="key">{key}</ul>{figure(parts, caption, HIGH)}'


def told(each: Any) -> str:
    """A text: its words coloured by attention, and what each says for itself."""
    flat = 3 / max(3, len(each.attention))  # attention that is the same for all words is pale
    most = max(flat, *each.attention) if each.attention else 1.0
    words = [
        f'<b class="f{round(10 * share / most)}" title="{share:.3f}">{say(token)}</b>'
        for token, share in zip(each.tokens, each.attention, strict=True)
    ]
    right = "" if each.predicted == each.label else f", labelled {say(each.label)}"
    text = f'<p class="label">{say(each.predicted)}{right}</p><p class="text">{" ".join(words)}</p>'
    if len(each.probability) < 2:
        return text
    count = len(each.probability)
    across = lambda t: 12 + t / (count - 1) * (WIDE - 36)  # noqa: E731
    down = lambda y: 8 + (1 - y) * 60  # noqa: E731
    points = " ".join(f"{across(t):.1f},{down(y):.1f}" for t, y in enumerate(each.probability))
    parts = [
        f'<line class="axis" x1="8" y1="{down(y):.1f}" x2="{WIDE - 20}" y2="{down(y):.1f}"/>' for y in (0.0, 0.5, 1.0)
    ]
    parts += [f'<text x="{WIDE - 2}" y="{down(y) + 4:.1f}" text-anchor="end">{y:g}</text>' for y in (0.0, 1.0)]
    parts.append(f'<polyline class="m0" stroke-width="2" points="{points}"/>')
    both = zip(each.probability, each.tokens, strict=True)
    parts += [dot(across(t), down(y), 0, f"{token}: {y:.2f}") for t, (y, token) in enumerate(both)]
    return text + figure(parts, f"probability of {each.predicted} from each word alone", 80)


def dot(x: float, y: float, hue: int, title: str) -> str:
    place = f'cx="{x:.1f}" cy="{y:.1f}" r="2.5"'
    return f'<circle class="m{hue}" stroke-width="2" {place}><title>{say(title)}</title></circle>'


def figure(parts: Sequence[str], caption: str, high: int) -> str:
    size = f'viewBox="0 0 {WIDE} {high}" width="{WIDE}" height="{high}"'
    drawn = f'<svg {size} role="img" aria-label="{say(caption)}">{"".join(parts)}</svg>'
    return f"<figure>{drawn}<figcaption>{say(caption)}</figcaption></figure>"
