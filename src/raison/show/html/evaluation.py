"""An evaluation as one HTML page: the table with intervals, curves, and the texts where methods did best and worst.

No script: everything is text and inline SVG, and a content security policy admits the one style sheet by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator, Sequence

import numpy as np

from raison.core.evaluation import Column, EvaluatedText, Evaluation, curve_title
from raison.show import scale
from raison.show.figure.curves import shares_of
from raison.show.scale import HUES
from raison.show.scoreboard import between, costs, headings, number, summary, winners
from raison.show.wording import clean

__all__ = ["STYLE", "paints", "report", "say", "sheet"]

# one hue per method, told apart by lightness too
WIDE, HIGH, EDGE = 420, 220, 36  # of a curve, in pixels
SHOWN = 3  # best and worst texts of each column

STYLE = """
:root { color-scheme: light dark; --ink: #1b1c1f; --quiet: #64666d; --line: #d9dade; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8ea; --quiet: #a0a2a9; --line: #3a3b40; --paper: #17181b; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
body { margin: 2rem auto; padding: 0 1.2rem; max-width: 70rem; }
h1 { font-size: 1.35rem; } h2 { font-size: 1.1rem; margin-top: 2.4rem; } h3 { font-size: 1rem; }
p.note { color: var(--quiet); margin: .2rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .35rem .8rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); }
td small { display: block; color: var(--quiet); font-size: .78rem; }
td.best { font-weight: 650; } td.best small { font-weight: 400; }
.curves { display: flex; flex-wrap: wrap; gap: 1.6rem; }
figure { margin: 0; } figcaption { color: var(--quiet); font-size: .9rem; }
svg text { font: 11px system-ui, sans-serif; fill: var(--quiet); } svg .axis { stroke: var(--line); }
.key { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0; list-style: none; font-size: .9rem; }
.key i { display: inline-block; width: 1.2rem; height: .22rem; vertical-align: middle; margin-right: .4rem; }
.text { margin: .5rem 0 .9rem; line-height: 1.9; }
.text b { font-weight: 400; padding: .08rem .12rem; border-radius: 3px; }
.label { color: var(--quiet); font-size: .88rem; }
"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{style_hash}'; base-uri 'none'; \
form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head>
<body><main>{body}</main></body></html>
"""


def say(text: object) -> str:
    """Text from strangers, made harmless."""
    return html.escape(clean(str(text)))


def report(evaluation: Evaluation) -> str:
    """The whole page."""
    lines = summary(evaluation)
    colours = {method: HUES[k % len(HUES)] for k, method in enumerate(evaluation.methods)}
    rules = STYLE + "".join(rule for rule in paints(colours))
    body = [f"<h1>{say(lines[0])}</h1>", *(f'<p class="note">{say(line)}</p>' for line in lines[1:])]
    body += [f'<div class="scroll">{table(evaluation)}</div>']
    if evaluation.curves:
        body += ["<h2>Curves</h2>", key(evaluation), '<div class="curves">']
        body += [curve(name, by_method, colours) for name, by_method in evaluation.curves.items()]
        body.append("</div>")
    body += extremes(evaluation)
    return sheet(lines[0], rules, body)


def sheet(title: str, rules: str, body: Sequence[str]) -> str:
    """A page of its own: one style sheet, known by its hash, and no script."""
    digest = base64.b64encode(hashlib.sha256(rules.encode()).digest()).decode()
    return PAGE.format(style_hash=f"sha256-{digest}", title=say(title), style=rules, body="\n".join(body))


def paints(colours: dict[str, str]) -> Iterator[str]:
    """Classes instead of style attributes, which the policy would not admit."""
    for k, colour in enumerate(colours.values()):
        yield f".m{k} {{ background: {colour}; stroke: {colour}; }}\nsvg .m{k} {{ background: none; fill: none; }}\n"
    for k in range(11):
        for name, hue in (("f", scale.FOR), ("a", scale.AGAINST)):
            red, green, blue = (round(c) for c in hue)
            yield f".{name}{k} {{ background: rgba({red},{green},{blue},{0.62 * k / 10:.3f}); }}\n"


def table(evaluation: Evaluation) -> str:
    names = [*map(headings, evaluation.columns), "CPU s per text", "forward", "backward"]
    rows = ["<tr><th>method</th>" + "".join(f"<th>{say(name)}</th>" for name in names) + "</tr>"]
    best = {column.key: winners(evaluation, column) for column in evaluation.columns}
    for method in evaluation.methods:
        cells = [f"<td>{say(method)}</td>"]
        for column in evaluation.columns:
            cell = evaluation.cell(method, column.key)
            mark = ' class="best"' if method in best[column.key] else ""
            cells.append(f"<td{mark}>{number(cell.value)}<small>{between(cell)}</small></td>")
        cells += [f"<td>{each}</td>" for each in costs(evaluation, method)]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(rows)}</table>"


def key(evaluation: Evaluation) -> str:
    items = (f'<li><i class="m{k % len(HUES)}"></i>{say(m)}</li>' for k, m in enumerate(evaluation.methods))
    return f'<ul class="key">{"".join(items)}</ul>'


def curve(name: str, by_method: dict[str, list[float]], colours: dict[str, str]) -> str:
    """The mean curve of each method over the share of units."""
    values = np.array(list(by_method.values()))
    low, high = float(min(0.0, values.min())), float(max(0.0, values.max()))
    high = high if high > low else low + 1
    points = values.shape[1]
    share = shares_of(name, points) if points > 1 else np.array([1.0])
    across = lambda x: EDGE + x * (WIDE - EDGE - 8)  # noqa: E731
    down = lambda y: 8 + (high - y) / (high - low) * (HIGH - EDGE)  # noqa: E731
    level = lambda y: f'x1="{EDGE}" y1="{down(y):.1f}" x2="{WIDE - 8}" y2="{down(y):.1f}"'  # noqa: E731
    parts = [f'<line class="axis" {level(y)}/>' for y in (low, high)]
    named = [(y, f"{round(y, 2) + 0:.2f}".replace("-", "−")) for y in (low, high)]  # + 0: no minus before a zero
    parts += [f'<text x="2" y="{down(y) + 4:.1f}">{name}</text>' for y, name in named]
    for x, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        parts.append(f'<text x="{across(x):.1f}" y="{HIGH - 6}" text-anchor="{anchor}">{x:.0%}</text>')
    for k, method in enumerate(by_method):
        line = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in zip(share, by_method[method], strict=True))
        told = f"<title>{say(method)}</title>"
        parts.append(f'<polyline class="m{k % len(HUES)}" stroke-width="2" points="{line}">{told}</polyline>')
    title = curve_title(name)
    axis = "randomised blocks" if name == "randomisation_curve" else "units"
    return (
        f'<figure><svg viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" height="{HIGH}" role="img" aria-label="{say(title)}">'
        f"{''.join(parts)}</svg><figcaption>{say(title)} by share of {axis}</figcaption></figure>"
    )


def extremes(evaluation: Evaluation) -> Iterator[str]:
    """For the first number: the texts on which the best method did best and worst, as it explains them."""
    for column in evaluation.columns[:1]:
        if column.higher is None:
            continue
        best_of = winners(evaluation, column)
        leader = next((m for m in evaluation.methods if m in best_of), evaluation.methods[0])
        values = evaluation.cell(leader, column.key).each
        order = [k for k in np.argsort([np.nan if v is None else v for v in values]) if values[k] is not None]
        best, worst = (order[::-1], order) if column.higher else (order, order[::-1])
        yield f"<h2>{say(column.key)} of {say(leader)}, text by text</h2>"
        few = min(SHOWN, (len(order) + 1) // 2)  # no text is shown as both
        for title, chosen in (("Best", best[:few]), ("Worst", worst[: min(few, len(order) - few)])):
            if not chosen:
                continue
            yield f"<h3>{title}</h3>"
            for k in chosen:
                yield told(evaluation, evaluation.texts[k], leader, column, values[k])


def told(evaluation: Evaluation, seen: EvaluatedText, method: str, column: Column, value: float | None) -> str:
    """One text, its words coloured by the method's scores."""
    units: Sequence[Sequence] = seen.units.get(method, [])
    most = max((abs(score) for _, score in units), default=0.0) or 1.0
    words = []
    for name, score in units:
        step = round(10 * abs(score) / most)
        words.append(f'<b class="{"f" if score >= 0 else "a"}{step}" title="{score:+.4f}">{say(name)}</b>')
    known = f" {seen.probability:.1%}" if seen.probability is not None else ""
    gold = f", labelled {say(seen.label)}" if seen.label is not None else ""
    return (
        f'<p class="label">{say(column.key)} {number(value)} · {say(seen.target)}{known}{gold}'
        f'{" · " + say(seen.id) if seen.id else ""}</p><p class="text">{" ".join(words)}</p>'
    )
