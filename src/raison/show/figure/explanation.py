"""Explanations as a picture for a paper or a slide: PNG, SVG or PDF, drawn with matplotlib.

One explanation: its text with the rationale marked and the path of the search. Several rationales of one text: their
matrix. Several methods: the text once for each. What people marked can be drawn with it: words in bold over the
rationale (P0, Figures 5 and 9), linked words framed in the matrix (P0, Figure 6).
The same explanations give the same file, byte by byte.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from raison.core.errors import InputError
from raison.core.records import Explanation, Span
from raison.show.explanation_groups import group_into_matrices, subject_of_explanation
from raison.show.figure.explanation_sheet import explanation_figure
from raison.show.figure.matrix import matrix_figure
from raison.show.figure.methods import methods_figure
from raison.show.figure.savefig import check_picture_ending, save_figure
from raison.show.rationale_matrix import matrix_of_rationales
from raison.show.rationale_sentences import is_rationale

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
    every = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    if not every:
        raise InputError("There is nothing to draw: give at least one explanation.")
    has_methods = len(every) > 1 and are_methods_about_one_target(every)
    if len(every) > 1 and not has_methods and len(group_into_matrices(every, least=2)) > 1:
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
        save_figure(lambda: methods_figure(every, difference=difference, gold=marked), path)
    elif len(every) > 1:
        linked = checked_gold_links(gold)
        save_figure(lambda: matrix_figure(matrix_of_rationales(every, linked)), path)
    else:
        marked = checked_gold_spans(gold)
        save_figure(lambda: explanation_figure(every[0], marked), path)


def are_methods_about_one_target(explanations: Sequence[Explanation]) -> bool:
    """Whether these are scores of the same target in the same text."""
    subjects = {subject_of_explanation(explanation) for explanation in explanations}
    return len(subjects) == 1 and not any(is_rationale(explanation) for explanation in explanations)


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
        if (
            not isinstance(link, (tuple, list))
            or len(link) != 2
            or not all(isinstance(span, Span) for span in link)
        ):
            raise InputError(
                "The gold links of a matrix are pairs of spans, what is read and what is written, such as "
                "(Span(0, 3), Span(4, 9)): give a list of these."
            )
        read, written = link
        links.append((read, written))
    return links
