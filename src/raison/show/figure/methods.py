"""Several methods about one text as a picture: the text once for each, or what each gives less than the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from raison.core.records import Explanation, Span
from raison.show import colour_scale
from raison.show.agreement_measures import agreement_of_pairs
from raison.show.agreement_sentences import method_titles, statement_of_agreement
from raison.show.explanation_sentences import provenance_phrases, telling_diagnostics
from raison.show.figure.canvas import SMALL
from raison.show.figure.explanation_sheet import ExplanationSheet
from raison.show.figure.typeset import SheetWord
from raison.show.method_difference import differences_from_first_method
from raison.show.text_pieces import is_unproved_selection

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
    compared = differences_from_first_method(explanations) if difference else []

    page = ExplanationSheet(gold)
    page.add_head(explanations[0])
    agreement = agreement_of_pairs([explanation.scores for explanation in explanations])
    page.write([SheetWord(statement_of_agreement(explanations, agreement), "plain")], 10.0)
    for name, explanation in zip(names, shown, strict=False):
        draw_method_text(page, name, explanation)
    for each in compared:
        page.skip(SPACE)
        page.write(
            [
                SheetWord(f"{each.first} − {each.second}   ", "bold"),
                SheetWord(each.meaning(), "quiet"),
            ],
            SMALL,
        )
        page.add_texts(each.explanation, each)

    page.skip(SPACE)
    if any(colour_scale.has_negative_scores(explanation.scores) for explanation in shown):
        more, less = colour_scale.SCORES
        draw_colour_key(
            page,
            SheetWord("for the target", "plain", more, 0),
            SheetWord("against it", "plain", less, 1),
        )
    if compared:
        more, less = colour_scale.DIFFERENCES
        first_more = SheetWord(f"{names[0]} gives more", "plain", more, 0, 1)
        draw_colour_key(page, first_more, SheetWord("the other gives more", "plain", less, 1, -1))
    page.add_legend(filled=False)
    return page.figure()


def draw_method_text(page: ExplanationSheet, name: str, explanation: Explanation) -> None:
    """A method's name, how its scores came about, and the text in its colours."""
    facts = [*provenance_phrases(explanation), *telling_diagnostics(explanation)]
    if explanation.method == name:
        facts = facts[1:]  # the method is said already
    page.skip(SPACE)
    page.write([SheetWord(f"{name}   ", "bold"), SheetWord(" · ".join(facts), "quiet")], SMALL)
    page.add_texts(explanation)
    if is_unproved_selection(explanation):
        page.add_selected_share(explanation)


def draw_colour_key(page: ExplanationSheet, above: SheetWord, below: SheetWord) -> None:
    """What two colours mean."""
    page.write([above, SheetWord("   ", "plain"), below], SMALL)
