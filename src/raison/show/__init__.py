"""Explanations for people's eyes: in the terminal, as one HTML file that opens without a network, and as a picture.

Everything here reads the `Explanation` record and nothing else: no model is needed to look at a result.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from raison.core.records import Explanation, Span
from raison.show.html.explanation import to_html
from raison.show.terminal.explanation import render, render_many

__all__ = ["render", "render_many", "to_figure", "to_html"]


def to_figure(
    explanations: Explanation | Sequence[Explanation],
    path: str | os.PathLike[str],
    *,
    difference: bool = False,
    gold: Sequence[Span] | Sequence[tuple[Span, Span]] | None = None,
) -> None:
    """Write one explanation, several methods or several rationales of one text, as a PNG, SVG or PDF file.

    `difference` draws the first method and where it gives more or less than the others. `gold` is what people say: the
    spans that they marked in the text (`Example.gold`), set in bold; for a matrix the pairs of spans (read, written)
    that they linked, framed.
    """
    from raison.show.figure.explanation import to_figure as write  # what few need is imported late

    write(explanations, path, difference=difference, gold=gold)
