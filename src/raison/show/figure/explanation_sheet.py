"""One explanation from top to bottom: what was predicted, the text with the rationale marked, the path of the search.

With gold words, bold letters are kept for what people marked (P0, Figures 5 and 9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from raison.core.records import Explanation, Span
from raison.show import colour_scale
from raison.show import rationale_sentences as proof
from raison.show.explanation_sentences import headline_phrases, provenance_phrases
from raison.show.figure.canvas import FAINT, INK, KEPT, MARGIN, QUIET, SMALL
from raison.show.figure.typeset import SheetBar, SheetLabel, SheetWord, TypesetSheet
from raison.show.method_difference import MethodDifference
from raison.show.search_path_steps import PathStep, path_excerpt, path_measure, search_path
from raison.show.text_formats import clean_text, count_with_noun
from raison.show.text_pieces import (
    TextPassage,
    TextPiece,
    answer_passages,
    is_selected_piece,
    is_unproved_selection,
    shorten_pieces,
    strongest_weight_of_piece,
    text_passages,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ExplanationSheet", "draw_search_path", "explanation_figure"]

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
    page.write([SheetWord(" · ".join(provenance_phrases(explanation)), "quiet")], SMALL)
    if rationale:
        for warning in proof.rationale_warnings(explanation):
            page.write([SheetWord(warning, "alarm")], 10.0)
    page.skip(0.15)
    page.add_texts(explanation)
    page.add_legend(filled=rationale)
    if is_unproved_selection(explanation):
        page.skip(0.1)
        page.add_selected_share(explanation)
    if rationale:
        page.skip(0.15)
        steps = search_path(explanation)
        if steps:
            draw_search_path(page, path_excerpt(steps), path_measure(explanation))
            page.skip(0.1)
        page.write([SheetWord(" · ".join(proof.certificate_in_words(explanation)), "plain")], 10.0)
        page.write(
            [SheetWord(" · ".join(proof.search_effort_in_words(explanation)), "quiet")], SMALL
        )
    return page.figure()


class ExplanationSheet(TypesetSheet):
    """A sheet with the parts that pictures of explanations are made of."""

    def __init__(self, gold: Sequence[Span] | None = None):
        super().__init__()
        self.gold = gold

    def add_head(self, explanation: Explanation) -> None:
        """The model and what it says."""
        said = " · ".join(headline_phrases(explanation))
        self.write(
            [SheetWord(f"{clean_text(explanation.model)} · ", "quiet"), SheetWord(said, "bold")]
        )

    def add_selected_share(self, explanation: Explanation) -> None:
        """How much of the text was selected, on the colour of what was."""
        size = proof.rationale_in_words(explanation).size
        self.write([SheetWord(f"rationale {size}", "plain", colour_scale.SELECTED, 0)], SMALL)

    def add_legend(self, *, filled: bool) -> None:
        """What bold letters mean, where they tell what people marked, and what is `filled`."""
        if self.gold is None:
            return
        self.skip(0.08)
        words = [SheetWord("bold", "plain", heavy=True), SheetWord("  marked by people", "quiet")]
        if filled:
            words = [
                SheetWord("filled", "plain", colour_scale.FOR, 0),
                SheetWord("  in the rationale      ", "quiet"),
                *words,
            ]
        self.write(words, SMALL)

    def add_texts(
        self, explanation: Explanation, difference: MethodDifference | None = None
    ) -> None:
        """The text, or the passages of an answer under their names; in the colours of a difference, if there is one."""
        if explanation.grounding is not None and proof.is_rationale(explanation):
            self.add_answer(explanation)
            return
        passages = text_passages(explanation, self.gold or ())
        shorten = proof.is_rationale(explanation) and is_long_text(passages)
        for passage in passages:
            if len(passages) > 1:
                self.write([SheetWord(clean_text(passage.name), "quiet")], SMALL)
            pieces = (
                shorten_pieces(passage.pieces, explanation, tail=True)
                if shorten
                else passage.pieces
            )
            self.write(self.words_of(pieces, explanation, difference))

    def add_answer(self, explanation: Explanation) -> None:
        """A question, its answer, and the passages; of those that are not needed only their beginning, in grey."""
        grounding = explanation.grounding
        if grounding is None:
            return
        self.write(
            [SheetWord("question  ", "quiet"), SheetWord(clean_text(grounding.question), "plain")],
            11.0,
        )
        self.write(
            [SheetWord("answer  ", "quiet"), SheetWord(clean_text(grounding.answer), "bold")], 11.0
        )
        self.write([SheetWord(clean_text(grounding.statement), "bold")], 11.0)
        passages = answer_passages(explanation, self.gold or ())
        long = is_long_text(passages)
        for finding, passage in zip(grounding.passages, passages, strict=True):
            self.skip(0.12)
            self.write(
                [
                    SheetWord(f"{clean_text(passage.name)}   ", "bold"),
                    SheetWord(proof.passage_role_in_answer(finding), "quiet"),
                ],
                SMALL,
            )
            needed = finding.selected or finding.necessary
            shorten = long or not needed
            pieces = (
                shorten_pieces(passage.pieces, explanation, tail=needed)
                if shorten
                else passage.pieces
            )
            words = self.words_of(pieces, explanation)
            if needed:
                self.write(words)
            else:
                self.write([replace(word, style="quiet") for word in words], 10.0)

    def words_of(
        self,
        pieces: Sequence[TextPiece],
        explanation: Explanation,
        difference: MethodDifference | None = None,
    ) -> list[SheetWord]:
        """Pieces as they look."""
        return [
            self.word_of(piece, number, explanation, difference)
            for number, piece in enumerate(pieces)
        ]

    def word_of(
        self,
        piece: TextPiece,
        number: int,
        explanation: Explanation,
        difference: MethodDifference | None,
    ) -> SheetWord:
        """A piece as it looks."""
        style = STYLES.get(piece.kind, "plain")
        colour, line = None, 0
        if proof.is_rationale(explanation):
            if is_selected_piece(piece, explanation):
                style, colour = "kept" if self.gold is None else "plain", colour_scale.FOR
        elif difference is not None:
            colour = tint_of_piece(piece, difference.weights, colour_scale.DIFFERENCES)
            line = (
                int(np.sign(strongest_weight_of_piece(piece, difference.weights))) if colour else 0
            )
        elif is_unproved_selection(explanation):
            colour = colour_scale.SELECTED if is_selected_piece(piece, explanation) else None
        else:
            colour = tint_of_piece(
                piece, colour_scale.relative_weights(explanation.scores), colour_scale.SCORES
            )

        text = clean_text(piece.text)
        if piece.kind == "outcome":
            text = f' → "{text}"'
        elif piece.kind == "special":
            text = f" {text} "
        return SheetWord(text, style, colour, number, line, piece.gold)


def is_long_text(passages: Sequence[TextPassage]) -> bool:
    """Whether texts are so long that what is far from a rationale is left out."""
    return sum(len(piece.text) for passage in passages for piece in passage.pieces) > LONGEST


def tint_of_piece(
    piece: TextPiece, weights: np.ndarray, hues: tuple[colour_scale.RGB, colour_scale.RGB]
) -> colour_scale.RGB | None:
    """The colour behind a piece on white paper; none behind what has no units or little weight."""
    if not piece.units:
        return None
    return colour_scale.background_colour(
        strongest_weight_of_piece(piece, weights), colour_scale.PAPERS["light"], hues
    )


LINE, SIZE = 0.22, 9.5  # inches of a row, points of its letters
CHANGE, NUMBER, FIGURE, BAR, TICK = MARGIN, 3.35, 4.35, 4.5, 7.05  # where columns stand, in inches
LONGEST_BAR = 2.45  # inches


def draw_search_path(sheet: TypesetSheet, steps: Sequence[PathStep | int], measure: str) -> None:
    """A row for each step; a number stands for steps left out. `measure` is what the figures are."""
    draw_path_cell(sheet, "change", CHANGE, colour=QUIET)
    draw_path_cell(sheet, "size", NUMBER, align="right", colour=QUIET)
    draw_path_cell(sheet, measure, FIGURE, align="right", colour=QUIET)
    for step in steps:
        sheet.skip(LINE)
        if isinstance(step, int):
            draw_path_cell(sheet, f"⋮ {count_with_noun(step, 'step')} more", CHANGE, colour=QUIET)
        else:
            draw_path_step(sheet, step)
    sheet.skip(LINE)


def draw_path_step(sheet: TypesetSheet, step: PathStep) -> None:
    """One step: what changed, how many units there are now, and what the model says."""
    is_whole_context = step.number is None
    colour = QUIET if is_whole_context else INK
    draw_path_cell(
        sheet,
        cut_text_to_inches(sheet, step.change(), NUMBER - CHANGE - 0.5),
        CHANGE,
        colour=colour,
    )
    draw_path_cell(sheet, str(step.size), NUMBER, align="right", colour=colour)
    draw_path_cell(sheet, step.figure, FIGURE, align="right", colour=colour)
    if step.weight is not None:
        length = max(0.01, LONGEST_BAR * step.weight)
        bar_colour = FAINT if is_whole_context else KEPT
        sheet.marks.append(
            SheetBar(BAR, sheet.height + LINE * 0.22, length, LINE * 0.56, bar_colour)
        )
    if step.enough:
        draw_path_cell(sheet, "✓", TICK, colour=colour)


def draw_path_cell(
    sheet: TypesetSheet, text: str, across: float, *, align: str = "left", colour: str = INK
) -> None:
    """Write into the present row."""
    sheet.marks.append(
        SheetLabel(text, across, sheet.height + LINE * 0.7, SIZE, colour, align=align)
    )


def cut_text_to_inches(sheet: TypesetSheet, text: str, room: float) -> str:
    """A text cut to a width."""
    while sheet.ruler(text, SIZE) > room and len(text) > 2:
        text = text[:-2].rstrip() + "…"
    return text
