"""Several methods about one text as a picture: the text once for each, or what each gives less than the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raison.core.records import Explanation, Span
from raison.show import scale
from raison.show.agreement import agreement_of_pairs
from raison.show.consensus import method_titles, statement_of_agreement
from raison.show.difference import differences_from_first
from raison.show.figure.canvas import SMALL
from raison.show.figure.typeset import Leaf, Word
from raison.show.spans import selection
from raison.show.wording import provenance, telling_diagnostics

__all__ = ["stack"]

SPACE = 0.16  # inches between methods


def stack(explanations: Sequence[Explanation], difference: bool = False, gold: Sequence[Span] | None = None) -> Any:
    """Methods under each other; with `difference`, the first one and where it gives more or less than each other.

    What people marked (`gold`) is in bold.
    """
    leaf = Leaf(explanations[0], gold)
    leaf.head()
    agreements = agreement_of_pairs([explanation.scores for explanation in explanations])
    leaf.words([Word(statement_of_agreement(explanations, agreements), "plain")], 10.0)
    names = method_titles(explanations)
    for name, explanation in zip(names[:1] if difference else names, explanations, strict=False):
        leaf.height += SPACE
        facts = [*provenance(explanation), *telling_diagnostics(explanation)][explanation.method == name :]
        leaf.words([Word(f"{name}   ", "bold"), Word(" · ".join(facts), "quiet")], SMALL)
        leaf.texts(explanation)
        if selection(explanation):
            leaf.selected(explanation)
    found = differences_from_first(explanations) if difference else []
    for each in found:
        leaf.height += SPACE
        leaf.words([Word(f"{each.first} − {each.second}   ", "bold"), Word(each.meaning(), "quiet")], SMALL)
        leaf.texts(each.explanation, each)
    leaf.height += SPACE
    if any(scale.has_negative(e.scores) for e in explanations[: 1 if difference else None]):
        key(leaf, scale.SCORES, "for the target", "against it", 0)
    if found:
        key(leaf, scale.DIFFERENCES, f"{names[0]} gives more", "the other gives more", 1)
    leaf.legend(rationale=False)
    return leaf.figure()


def key(leaf: Leaf, hues: tuple[scale.RGB, scale.RGB], above: str, below: str, line: int) -> None:
    """What two colours mean."""
    words = [Word(above, "plain", hues[0], 0, line), Word("   ", "plain"), Word(below, "plain", hues[1], 1, -line)]
    leaf.words(words, SMALL)
