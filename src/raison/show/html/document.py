"""The document of pages without a script: safe text, elements, colour rules, a policy with the hash of the style."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence

from raison.show.colour_scale import AGAINST_TARGET, FOR_TARGET
from raison.show.text_formats import clean_text

__all__ = [
    "STYLE",
    "colour_rules_css",
    "content_hash",
    "html_element",
    "page_without_script",
    "pixels_in_document",
    "safe_html",
]

MAY_BE_EMPTY = ("line", "polyline")  # elements that end where they begin
DARKEST = 0.62  # opacity of the colour behind the strongest word
SHADES = 10  # of it

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


def page_without_script(title: str, style: str, body: Sequence[str]) -> str:
    """A page of its own: one style sheet, known by its hash, and no script."""
    return PAGE.format(
        style_hash=content_hash(style), title=safe_html(title), style=style, body="\n".join(body)
    )


def safe_html(text: object) -> str:
    """Text from strangers, made harmless."""
    return html.escape(clean_text(str(text)))


def html_element(name: str, *parts: str, **attributes: object) -> str:
    """An element of HTML or SVG around parts that are HTML already; `class_` and `stroke_width` name attributes that
    Python can't."""
    written = ""
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        written += f' {attribute}="{value}"'
    if name in MAY_BE_EMPTY and not parts:
        return f"<{name}{written}/>"
    return f"<{name}{written}>{''.join(parts)}</{name}>"


def pixels_in_document(length: float) -> str:
    """A length or a place in an SVG picture."""
    return f"{length:.1f}"


def content_hash(block: str) -> str:
    """The hash by which a content security policy knows an inline block."""
    return "sha256-" + base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()


def colour_rules_css(line_colours: Sequence[str]) -> str:
    """Classes instead of style attributes, which the policy would not admit: `m0` … for the colours of lines, `f0` to
    `f10` and `a0` to `a10` for words that speak for and against."""
    rules = []
    for place, colour in enumerate(line_colours):
        rules.append(f".m{place} {{ background: {colour}; stroke: {colour}; }}\n")
        rules.append(f"svg .m{place} {{ background: none; fill: none; }}\n")
    for shade in range(SHADES + 1):
        opacity = f"{DARKEST * shade / SHADES:.3f}"
        for name, hue in (("f", FOR_TARGET), ("a", AGAINST_TARGET)):
            rgba = ",".join([*map(str, hue), opacity])
            rules.append(f".{name}{shade} {{ background: rgba({rgba}); }}\n")
    return "".join(rules)
