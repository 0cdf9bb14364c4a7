"""Explanations as a picture for a paper or a slide: PNG, SVG or PDF, drawn with matplotlib.

One explanation: its text with the rationale marked and the path of the search. Several rationales of one text: their
matrix. Several methods: the text once for each. What people marked can be drawn with it: words in bold over the
rationale (P0, Figures 5 and 9), linked words framed in the matrix (P0, Figure 6).
The same explanations give the same file, byte by byte.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from raison.core.errors import InputError
from raison.core.records import Explanation, Span
from raison.show.certificate import is_rationale
from raison.show.consensus import subject_of
from raison.show.figure.matrix import matrix_figure
from raison.show.figure.methods import stack
from raison.show.figure.savefig import check_ending, save_figure
from raison.show.figure.typeset import Leaf
from raison.show.matrix import matrix, sheets

__all__ = ["to_figure"]


def to_figure(
    explanations: Explanation | Sequence[Explanation],
    path: str | os.PathLike[str],
    *,
    difference: bool = False,
    gold: Sequence[Span] | Sequence[tuple[Span, Span]] | None = None,
) -> None:
    """Write one explanation, or several methods or rationales of one text; the ending of `path` says in which form."""
    check_ending(path)
    found = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    if not found:
        raise InputError("There is nothing to draw: give at least one explanation.")
    same_subject = len({subject_of(each) for each in found}) == 1
    methods = len(found) > 1 and same_subject and not any(is_rationale(each) for each in found)
    if len(found) > 1 and not methods and len(sheets(found, least=2)) > 1:
        raise InputError(
            "One picture shows one explanation, several methods about one target, or rationales of several targets in "
            "one text: write a file for each."
        )
    if difference and not methods:
        raise InputError("A difference needs two methods that explain the same: give both explanations.")

    if len(found) > 1 and not methods:
        linked = links(gold)
        return save_figure(lambda: matrix_figure(matrix(found, linked)), path)
    marked = spans(gold)

    def drawn() -> Any:
        return stack(found, difference, marked) if methods else Leaf(found[0], marked).drawn()

    save_figure(drawn, path)


def spans(gold: Any) -> list[Span] | None:
    """Words that people marked in a text."""
    given = None if gold is None else list(gold)
    if given is not None and not all(isinstance(span, Span) for span in given):
        raise InputError("The gold words of a text are spans of characters, such as Span(4, 9): give a list of these.")
    return given


def links(gold: Any) -> list[tuple[Span, Span]] | None:
    """Words that people linked to each other."""
    given = None if gold is None else list(gold)
    if given is not None and not all(
        isinstance(link, (tuple, list)) and len(link) == 2 and all(isinstance(span, Span) for span in link)
        for link in given
    ):
        raise InputError(
            "The gold links of a matrix are pairs of spans, what is read and what is written, such as "
            "(Span(0, 3), Span(4, 9)): give a list of these."
        )
    return None if given is None else [(one, other) for one, other in given]
