"""The page of explanations: one HTML file with its script, style and JSON inlined, which opens from disk.

The page's own renderer is inlined. Texts come from strangers, so they travel as JSON that can't end
its script tag, the renderer only ever sets text, and a content security policy admits the two inlined
blocks by their hashes and nothing else.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from raison.core.records import Explanation
from raison.show.html.document import content_hash
from raison.show.html.page_data import page_data

__all__ = ["MODULES", "finite_json", "json_in_script", "to_html"]

# each imports only from those before it; together they are one script, so no two may use a name for two things
MODULES = (
    "scale.js",
    "wording.js",
    "pieces.js",
    "steps.js",
    "rationale.js",
    "render.js",
    "matrix.js",
    "difference.js",
    "compare.js",
    "groups.js",
)
LINKS = re.compile(r"^import [^;]*;\n|^export (?=const|function)", re.MULTILINE)

START = """
const page = document.getElementById("page");
page.replaceChildren();
for (const group of groupsOf(JSON.parse(document.getElementById("data").textContent))) drawGroup(group, page);
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{style_hash}'; \
script-src '{script_hash}'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body class="raison-page">
<main id="page"><noscript>This page draws its explanations with JavaScript: allow it for this file.</noscript></main>
<script type="application/json" id="data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def to_html(explanations: Explanation | Sequence[Explanation], title: str = "Explanation") -> str:
    """One self-contained page for one explanation or several; methods that explain the same thing, in a row, are
    compared."""
    shown = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    style = page_file_text("page.css")
    script = "\n".join(script_of_module(name) for name in MODULES) + START
    return PAGE.format(
        title=html.escape(title),
        style=style,
        style_hash=content_hash(style),
        script=script,
        script_hash=content_hash(script),
        data=json_in_script(page_data(shown, share_texts=True)),
    )


def page_file_text(name: str) -> str:
    return (files("raison") / "page" / name).read_text("utf-8")


def script_of_module(name: str) -> str:
    """A module of the page as a part of one script."""
    return LINKS.sub("", page_file_text(name))


def json_in_script(data: object) -> str:
    """JSON that is safe inside a script tag: nothing in it can close the tag or open a comment."""
    text = json.dumps(finite_json(data), ensure_ascii=False, allow_nan=False)
    # lone surrogates can't be written as UTF-8; the line separators end lines in old script parsers
    return re.sub("[<>&\u2028\u2029\ud800-\udfff]", escape_for_script, text)


def escape_for_script(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


def finite_json(value: Any) -> Any:
    """JSON has no NaN and no infinity, which diagnostics may have: they become words."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: finite_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_json(item) for item in value]
    return value
