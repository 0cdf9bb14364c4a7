"""Several methods about one text as a picture: the text once for each, or what each gives less than the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from raison.core.records import Explanation, Span
from raison.show import scale
from raison.show.agreement import agreement_of_pairs
from raison.show.consensus import method_titles, statement_of_agreement
from raison.show.difference import differences_from_first
from raison.show.figure.canvas import SMALL
from raison.show.figure.explanation_sheet import ExplanationSheet
from raison.show.figure.typeset import Word
from raison.show.spans import selection
from raison.show.wording import provenance, telling_diagnostics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["methods_figure"]

SPACE = 0.16  # inches between methods


def methods_figure(
    explanations: Sequence[Explanation],
    *,
    difference: bool = False,
    gold: Sequence[Span] | None = None,
) -> Figure:
    """Methods under each other; with `difference`, the first one and where it gives more or less than each other.

    What people marked (`gold`) is in bold.
    """
    names = method_titles(explanations)
    shown = explanations[:1] if difference else explanations
    compared = differences_from_first(explanations) if difference else []

    page = ExplanationSheet(gold)
    page.add_head(explanations[0])
    agreement = agreement_of_pairs([explanation.scores for explanation in explanations])
    page.write([Word(statement_of_agreement(explanations, agreement), "plain")], 10.0)
    for name, explanation in zip(names, shown, strict=False):
        add_method(page, name, explanation)
    for each in compared:
        page.skip(SPACE)
        page.write(
            [Word(f"{each.first} − {each.second}   ", "bold"), Word(each.meaning(), "quiet")], SMALL
        )
        page.add_texts(each.explanation, each)

    page.skip(SPACE)
    if any(scale.has_negative(explanation.scores) for explanation in shown):
        more, less = scale.SCORES
        add_key(
            page, Word("for the target", "plain", more, 0), Word("against it", "plain", less, 1)
        )
    if compared:
        more, less = scale.DIFFERENCES
        first_more = Word(f"{names[0]} gives more", "plain", more, 0, 1)
        add_key(page, first_more, Word("the other gives more", "plain", less, 1, -1))
    page.add_legend(filled=False)
    return page.figure()


def add_method(page: ExplanationSheet, name: str, explanation: Explanation) -> None:
    """A method's name, how its scores came about, and the text in its colours."""
    facts = [*provenance(explanation), *telling_diagnostics(explanation)]
    if explanation.method == name:
        facts = facts[1:]  # the method is said already
    page.skip(SPACE)
    page.write([Word(f"{name}   ", "bold"), Word(" · ".join(facts), "quiet")], SMALL)
    page.add_texts(explanation)
    if selection(explanation):
        page.add_selected_share(explanation)


def add_key(page: ExplanationSheet, above: Word, below: Word) -> None:
    """What two colours mean."""
    page.write([above, Word("   ", "plain"), below], SMALL)
