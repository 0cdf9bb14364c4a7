"""Explanations for people's eyes: printed in the terminal, as a page, as a picture. Says where each function is found.

Everything here reads records and nothing else: no model is needed to look at a result. A function's name says its file:

- `show/…_sentences.py`, `…_measures.py`, `…_steps.py`, `…_tables.py`, …: what is said, the same in every medium. Names
  hold the subject: `agreement_footnotes`, `rationale_warnings`, `matrix_facts`, `search_path`, `head_selection`.
- `show/terminal/X.py`: `print_…` writes to a console, `terminal_…` returns what is printed there.
- `show/figure/X.py`: `…_figure` returns a picture, `draw_…` draws a part of one or writes it to a file.
- `show/html/X.py`: `…_page` is a whole page, `…_html` and `…_svg` are parts of it; `html/X_words.py`: `words_of_…` is
  what the page's JavaScript draws, which makes no sentence of its own.
- `latex_…` is in `latex.py`, `notebook_…` in `notebook.py`.
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
