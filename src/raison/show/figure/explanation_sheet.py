"""One explanation from top to bottom: what was predicted, the text with the rationale marked, the path of the search.

With gold words, bold letters are kept for what people marked (P0, Figures 5 and 9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from raison.core.records import Explanation, Span
from raison.show import certificate as proof
from raison.show import scale
from raison.show.difference import Difference
from raison.show.figure.canvas import SMALL
from raison.show.figure.path_table import add_path
from raison.show.figure.typeset import Sheet, Word
from raison.show.search_path import excerpt, measure, path
from raison.show.spans import Passage, Piece, flow, grounded, selected, selection, shortened
from raison.show.wording import clean, headline, provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ExplanationSheet", "explanation_figure"]

LONGEST = (
    4000  # characters of a text with a rationale; of a longer one, what is far from it is left out
)
STYLES = {
    "given": "given",
    "outcome": "bold",
    "target": "bold",
    "special": "quiet",
    "unseen": "quiet",
    "unread": "quiet",
}  # of pieces; others are plain


def explanation_figure(explanation: Explanation, gold: Sequence[Span] | None = None) -> Figure:
    """The picture of one explanation."""
    page = ExplanationSheet(gold)
    rationale = proof.is_rationale(explanation)
    page.add_head(explanation)
    page.write([Word(" · ".join(provenance(explanation)), "quiet")], SMALL)
    if rationale:
        for warning in proof.warnings(explanation):
            page.write([Word(warning, "alarm")], 10.0)
    page.skip(0.15)
    page.add_texts(explanation)
    page.add_legend(filled=rationale)
    if selection(explanation):
        page.skip(0.1)
        page.add_selected_share(explanation)
    if rationale:
        page.skip(0.15)
        steps = path(explanation)
        if steps:
            add_path(page, excerpt(steps), measure(explanation))
            page.skip(0.1)
        page.write([Word(" · ".join(proof.proof_in_words(explanation)), "plain")], 10.0)
        page.write([Word(" · ".join(proof.effort_in_words(explanation)), "quiet")], SMALL)
    return page.figure()


class ExplanationSheet(Sheet):
    """A sheet with the parts that pictures of explanations are made of."""

    def __init__(self, gold: Sequence[Span] | None = None):
        super().__init__()
        self.gold = gold

    def add_head(self, explanation: Explanation) -> None:
        """The model and what it says."""
        said = " · ".join(headline(explanation))
        self.write([Word(f"{clean(explanation.model)} · ", "quiet"), Word(said, "bold")])

    def add_selected_share(self, explanation: Explanation) -> None:
        """How much of the text was selected, on the colour of what was."""
        size = proof.selection_in_words(explanation).size
        self.write([Word(f"rationale {size}", "plain", scale.SELECTED, 0)], SMALL)

    def add_legend(self, *, filled: bool) -> None:
        """What bold letters mean, where they tell what people marked, and what is `filled`."""
        if self.gold is None:
            return
        self.skip(0.08)
        words = [Word("bold", "plain", heavy=True), Word("  marked by people", "quiet")]
        if filled:
            words = [
                Word("filled", "plain", scale.FOR, 0),
                Word("  in the rationale      ", "quiet"),
                *words,
            ]
        self.write(words, SMALL)

    def add_texts(self, explanation: Explanation, difference: Difference | None = None) -> None:
        """The text, or the passages of an answer under their names; in the colours of a difference, if there is one."""
        if explanation.grounding is not None and proof.is_rationale(explanation):
            self.add_answer(explanation)
            return
        passages = flow(explanation, self.gold or ())
        shorten = proof.is_rationale(explanation) and is_long(passages)
        for passage in passages:
            if len(passages) > 1:
                self.write([Word(clean(passage.name), "quiet")], SMALL)
            pieces = (
                shortened(passage.pieces, explanation, tail=True) if shorten else passage.pieces
            )
            self.write(self.words_of(pieces, explanation, difference))

    def add_answer(self, explanation: Explanation) -> None:
        """A question, its answer, and the passages; of those that are not needed only their beginning, in grey."""
        grounding = explanation.grounding
        if grounding is None:
            return
        self.write([Word("question  ", "quiet"), Word(clean(grounding.question), "plain")], 11.0)
        self.write([Word("answer  ", "quiet"), Word(clean(grounding.answer), "bold")], 11.0)
        self.write([Word(clean(grounding.statement), "bold")], 11.0)
        passages = grounded(explanation, self.gold or ())
        long = is_long(passages)
        for finding, passage in zip(grounding.passages, passages, strict=True):
            self.skip(0.12)
            self.write(
                [
                    Word(f"{clean(passage.name)}   ", "bold"),
                    Word(proof.role_in_answer(finding), "quiet"),
                ],
                SMALL,
            )
            needed = finding.selected or finding.necessary
            shorten = long or not needed
            pieces = (
                shortened(passage.pieces, explanation, tail=needed) if shorten else passage.pieces
            )
            words = self.words_of(pieces, explanation)
            if needed:
                self.write(words)
            else:
                self.write([replace(word, style="quiet") for word in words], 10.0)

    def words_of(
        self,
        pieces: Sequence[Piece],
        explanation: Explanation,
        difference: Difference | None = None,
    ) -> list[Word]:
        """Pieces as they look."""
        return [
            self.word_of(piece, number, explanation, difference)
            for number, piece in enumerate(pieces)
        ]

    def word_of(
        self, piece: Piece, number: int, explanation: Explanation, difference: Difference | None
    ) -> Word:
        """A piece as it looks."""
        style = STYLES.get(piece.kind, "plain")
        colour, line = None, 0
        if proof.is_rationale(explanation):
            if selected(piece, explanation):
                style, colour = "kept" if self.gold is None else "plain", scale.FOR
        elif difference is not None:
            colour = tint(piece, difference.weights, scale.DIFFERENCES)
            line = int(np.sign(strongest_weight(piece, difference.weights))) if colour else 0
        elif selection(explanation):
            colour = scale.SELECTED if selected(piece, explanation) else None
        else:
            colour = tint(piece, scale.weights(explanation.scores), scale.SCORES)

        text = clean(piece.text)
        if piece.kind == "outcome":
            text = f' → "{text}"'
        elif piece.kind == "special":
            text = f" {text} "
        return Word(text, style, colour, number, line, piece.gold)


def is_long(passages: Sequence[Passage]) -> bool:
    """Whether texts are so long that what is far from a rationale is left out."""
    return sum(len(piece.text) for passage in passages for piece in passage.pieces) > LONGEST


def strongest_weight(piece: Piece, weights: np.ndarray) -> float:
    """The strongest weight of the units that share a piece."""
    return max((float(weights[unit]) for unit in piece.units), key=abs)


def tint(piece: Piece, weights: np.ndarray, hues: tuple[scale.RGB, scale.RGB]) -> scale.RGB | None:
    """The colour behind a piece on white paper; none behind what has no units or little weight."""
    if not piece.units:
        return None
    return scale.background(strongest_weight(piece, weights), scale.PAPERS["light"], hues)
