"""Several methods about one text as a picture: the text of each method, or its difference from the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from raison.core.records import Explanation, Span
from raison.show.agreement_measures import agreement_of_pairs
from raison.show.agreement_sentences import method_titles, statement_of_agreement
from raison.show.colour_scale import DIFFERENCE_HUES, SCORE_HUES, has_negative_scores
from raison.show.explanation_sentences import provenance_phrases, telling_diagnostics
from raison.show.figure.canvas import SMALL
from raison.show.figure.explanation_sheet import ExplanationSheet
from raison.show.figure.typeset import SheetWord
from raison.show.method_difference import MethodDifference, differences_from_first_method
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
    shown: Sequence[Explanation] = explanations
    compared: list[MethodDifference] = []
    if difference:
        shown = explanations[:1]
        compared = differences_from_first_method(explanations)

    page = ExplanationSheet(gold)
    page.add_head(explanations[0])
    agreement = agreement_of_pairs([explanation.scores for explanation in explanations])
    page.write_line([statement_of_agreement(explanations, agreement)], "plain", 10.0)
    for name, explanation in zip(names, shown, strict=False):
        draw_method_text(page, name, explanation)
    for each in compared:
        title = SheetWord(f"{each.first} − {each.second}   ", "bold")
        page.skip(SPACE)
        page.write([title, SheetWord(each.meaning(), "quiet")], SMALL)
        page.add_texts(each.explanation, each)

    page.skip(SPACE)
    if any(has_negative_scores(explanation.scores) for explanation in shown):
        more, less = SCORE_HUES
        above = SheetWord("for the target", "plain", colour=more, piece=0)
        below = SheetWord("against it", "plain", colour=less, piece=1)
        draw_colour_key(page, above, below)
    if compared:
        more, less = DIFFERENCE_HUES
        above = SheetWord(f"{names[0]} gives more", "plain", colour=more, piece=0, line=1)
        below = SheetWord("the other gives more", "plain", colour=less, piece=1, line=-1)
        draw_colour_key(page, above, below)
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
