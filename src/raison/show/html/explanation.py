"""Explanations as one HTML file that carries everything it needs and opens from disk.

The page's own renderer is inlined. Texts come from strangers, so they travel as JSON that can't end
its script tag, the renderer only ever sets text, and a content security policy admits the two inlined
blocks by their hashes and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from raison.core.records import Explanation

__all__ = ["embedded", "to_html"]

# each imports only from those before it; together they are one script, so no two may use a name for two things
MODULES = (
    "scale.js",
    "wording.js",
    "flow.js",
    "steps.js",
    "rationale.js",
    "matrix.js",
    "render.js",
    "agreement.js",
    "difference.js",
    "compare.js",
)
LINKS = re.compile(r"^import [^;]*;\n|^export (?=const|function)", re.MULTILINE)

START = """
const page = document.getElementById("page");
const explanations = JSON.parse(document.getElementById("explanations").textContent);
for (const each of explanations)
  if (typeof each.encoding === "number") each.encoding = explanations[each.encoding].encoding;
page.replaceChildren();
for (const group of besides(sheets(explanations)))
  if (group.length === 1) renderExplanation(group[0], page, story(group[0]));
  else if (!group[0].certificate) renderComparison(group, page);
  else renderMatrix(group, page, (each, below) => renderExplanation(each, below, story(each, false)));
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
<script type="application/json" id="explanations">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def to_html(explanations: Explanation | Sequence[Explanation], title: str = "Explanation") -> str:
    """One self-contained page for one explanation or several; methods that explain the same thing, in a row, are
    compared."""
    found = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    page = files("raison") / "page"
    style = (page / "page.css").read_text("utf-8")
    script = "\n".join(LINKS.sub("", (page / name).read_text("utf-8")) for name in MODULES) + START
    return PAGE.format(
        title=html.escape(title),
        style=style,
        style_hash=fingerprint(style),
        script=script,
        script_hash=fingerprint(script),
        data=embedded(records(found)),
    )


def records(explanations: Sequence[Explanation]) -> list[dict[str, Any]]:
    """The records as JSON; an encoding that came before is named by its place, since a matrix has one text only."""
    first: dict[str, int] = {}
    found = []
    for place, explanation in enumerate(explanations):
        record = explanation.to_dict()
        if (same := first.setdefault(explanation.encoding.content(), place)) != place:
            record["encoding"] = same
        found.append(record)
    return found


def fingerprint(block: str) -> str:
    """The hash by which a content security policy knows an inline block."""
    return "sha256-" + base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()


def embedded(data: Any) -> str:
    """JSON that is safe inside a script tag: nothing in it can close the tag or open a comment."""
    text = json.dumps(finite(data), ensure_ascii=False, allow_nan=False)
    # lone surrogates can't be written as UTF-8; the line separators end lines in old script parsers
    return re.sub("[<>&\u2028\u2029\ud800-\udfff]", lambda match: f"\\u{ord(match.group()):04x}", text)


def finite(value: Any) -> Any:
    """JSON has no NaN and no infinity; diagnostics may have them."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, (list, tuple)) else value
