"""The picture of one explanation, of several methods or of a matrix: `to_figure` checks them and writes the file.

PNG, SVG or PDF for a paper or a slide, drawn with matplotlib.

One explanation: its text with the rationale marked and the path of the search. Several rationales of one text: their
matrix. Several methods: the text once for each. What people marked can be drawn with it: words in bold over the
rationale (P0, Figures 5 and 9), linked words framed in the matrix (P0, Figure 6).
The same explanations give the same file, byte by byte.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from raison.core.errors import InputError
from raison.core.records import Explanation, Span
from raison.show.explanation_groups import group_into_matrices, subject_of_explanation
from raison.show.figure.explanation_sheet import explanation_figure
from raison.show.figure.matrix import matrix_figure
from raison.show.figure.methods import methods_figure
from raison.show.figure.savefig import check_picture_ending, save_figure
from raison.show.rationale_matrix import matrix_of_rationales
from raison.show.rationale_sentences import is_rationale

if TYPE_CHECKING:
    from typing import TypeGuard

__all__ = ["to_figure"]


def to_figure(
    explanations: Explanation | Sequence[Explanation],
    path: str | os.PathLike[str],
    *,
    difference: bool = False,
    gold: Sequence[Span] | Sequence[tuple[Span, Span]] | None = None,
) -> None:
    """Write one explanation, or several methods or rationales of one text; the ending of `path` says in which form."""
    check_picture_ending(path)
    shown = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    if not shown:
        raise InputError("There is nothing to draw: give at least one explanation.")
    has_several = len(shown) > 1
    has_methods = has_several and are_methods_about_one_target(shown)
    has_matrix = has_several and not has_methods
    if has_matrix and len(group_into_matrices(shown, least=2)) > 1:
        raise InputError(
            "One picture shows one explanation, several methods about one target, or rationales of several targets in "
            "one text: write a file for each."
        )
    if difference and not has_methods:
        raise InputError(
            "A difference needs two methods that explain the same: give both explanations."
        )

    if has_methods:
        marked = checked_gold_spans(gold)
        save_figure(lambda: methods_figure(shown, difference=difference, gold=marked), path)
    elif has_matrix:
        linked = checked_gold_links(gold)
        save_figure(lambda: matrix_figure(matrix_of_rationales(shown, linked)), path)
    else:
        marked = checked_gold_spans(gold)
        save_figure(lambda: explanation_figure(shown[0], marked), path)


def are_methods_about_one_target(explanations: Sequence[Explanation]) -> bool:
    """Whether these are scores of the same target in the same text."""
    if any(is_rationale(explanation) for explanation in explanations):
        return False
    subjects = {subject_of_explanation(explanation) for explanation in explanations}
    return len(subjects) == 1


def checked_gold_spans(
    gold: Sequence[Span] | Sequence[tuple[Span, Span]] | None,
) -> list[Span] | None:
    """Words that people marked in a text."""
    if gold is None:
        return None
    given = list(gold)
    spans = [span for span in given if isinstance(span, Span)]
    if len(spans) < len(given):
        raise InputError(
            "The gold words of a text are spans of characters, such as Span(4, 9): give a list of these."
        )
    return spans


def checked_gold_links(
    gold: Sequence[Span] | Sequence[tuple[Span, Span]] | None,
) -> list[tuple[Span, Span]] | None:
    """Words that people linked to each other."""
    if gold is None:
        return None
    links = []
    for link in gold:
        if not is_pair_of_spans(link):
            raise InputError(
                "The gold links of a matrix are pairs of spans, what is read and what is written, such as "
                "(Span(0, 3), Span(4, 9)): give a list of these."
            )
        read, written = link
        links.append((read, written))
    return links


def is_pair_of_spans(link: object) -> TypeGuard[tuple[Span, Span]]:
    """Whether a link is what is read and what is written."""
    if not isinstance(link, (tuple, list)) or len(link) != 2:
        return False
    return all(isinstance(span, Span) for span in link)
