"""The sheet of one explanation as a picture: headline, texts with the rationale marked, a table of the search path.

With gold words, bold letters are kept for what people marked (P0, Figures 5 and 9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from raison.core.findings import Grounding
from raison.core.records import Explanation, Span
from raison.show.colour_scale import (
    DIFFERENCE_HUES,
    FOR_TARGET,
    PAPER_COLOURS,
    RGB,
    SCORE_HUES,
    SELECTED_COLOUR,
    HuePair,
    background_colour,
    relative_weights,
)
from raison.show.explanation_sentences import headline_phrases, provenance_phrases
from raison.show.figure.canvas import FAINT, INK, KEPT, MARGIN, QUIET, SMALL
from raison.show.figure.typeset import SheetBar, SheetLabel, SheetWord, TypesetSheet
from raison.show.method_difference import MethodDifference
from raison.show.rationale_sentences import (
    certificate_in_words,
    is_rationale,
    passage_role_in_answer,
    rationale_in_words,
    rationale_warnings,
    search_effort_in_words,
)
from raison.show.search_path_steps import PathStep, path_excerpt, path_measure, search_path
from raison.show.text_formats import clean_text, count_with_noun
from raison.show.text_pieces import (
    TextPassage,
    TextPiece,
    answer_passages,
    is_selected_piece,
    is_unproved_selection,
    shorten_text_pieces,
    strongest_weight_of_piece,
    text_passages,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ExplanationSheet", "explanation_figure"]

# of the path of the search
LINE, SIZE = 0.22, 9.5  # inches of a row, points of its letters
CHANGE, NUMBER, FIGURE, BAR, TICK = MARGIN, 3.35, 4.35, 4.5, 7.05  # where columns stand, in inches
LONGEST_BAR = 2.45  # inches

# characters of a text with a rationale; of a longer one, what is far from it is left out
LONGEST = 4000
# of pieces; others are plain
STYLES = {
    "given": "given",
    "outcome": "bold",
    "target": "bold",
    "special": "quiet",
    "unseen": "quiet",
    "unread": "quiet",
}


def explanation_figure(explanation: Explanation, gold: Sequence[Span] | None = None) -> Figure:
    """The picture of one explanation."""
    page = ExplanationSheet(gold)
    rationale = is_rationale(explanation)
    page.add_head(explanation)
    page.write_line(provenance_phrases(explanation), "quiet", SMALL)
    if rationale:
        for warning in rationale_warnings(explanation):
            page.write_line([warning], "alarm", 10.0)
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
        page.write_line(certificate_in_words(explanation), "plain", 10.0)
        page.write_line(search_effort_in_words(explanation), "quiet", SMALL)
    return page.figure()


class ExplanationSheet(TypesetSheet):
    """A sheet with the parts that pictures of explanations are made of."""

    def __init__(self, gold: Sequence[Span] | None = None):
        super().__init__()
        self.gold = gold

    def add_head(self, explanation: Explanation) -> None:
        """The model and what it says."""
        model = f"{clean_text(explanation.model)} · "
        said = " · ".join(headline_phrases(explanation))
        self.write([SheetWord(model, "quiet"), SheetWord(said, "bold")])

    def add_selected_share(self, explanation: Explanation) -> None:
        """How much of the text was selected, on the colour of what was."""
        size = rationale_in_words(explanation).size
        word = SheetWord(f"rationale {size}", "plain", colour=SELECTED_COLOUR, piece=0)
        self.write([word], SMALL)

    def add_legend(self, *, filled: bool) -> None:
        """What bold letters mean, where they tell what people marked, and what is `filled`."""
        if self.gold is None:
            return
        self.skip(0.08)
        words = []
        if filled:
            words.append(SheetWord("filled", "plain", colour=FOR_TARGET, piece=0))
            words.append(SheetWord("  in the rationale      ", "quiet"))
        words.append(SheetWord("bold", "plain", heavy=True))
        words.append(SheetWord("  marked by people", "quiet"))
        self.write(words, SMALL)

    def add_texts(
        self, explanation: Explanation, difference: MethodDifference | None = None
    ) -> None:
        """The text, or the passages of an answer under their names; in the colours of a difference, if there is one."""
        has_rationale = is_rationale(explanation)
        if has_rationale and explanation.grounding is not None:
            self.add_answer(explanation, explanation.grounding)
            return
        passages = text_passages(explanation, self.gold or ())
        shorten = has_rationale and is_long_text(passages)
        for passage in passages:
            if len(passages) > 1:
                self.write_line([clean_text(passage.name)], "quiet", SMALL)
            pieces: Sequence[TextPiece] = passage.pieces
            if shorten:
                pieces = shorten_text_pieces(pieces, explanation, tail=True)
            self.write(self.words_of_pieces(pieces, explanation, difference))

    def add_answer(self, explanation: Explanation, grounding: Grounding) -> None:
        """A question, its answer, and the passages; of those that are not needed only their beginning, in grey."""
        question = clean_text(grounding.question)
        answer = clean_text(grounding.answer)
        self.write([SheetWord("question  ", "quiet"), SheetWord(question, "plain")], 11.0)
        self.write([SheetWord("answer  ", "quiet"), SheetWord(answer, "bold")], 11.0)
        self.write_line([clean_text(grounding.statement)], "bold", 11.0)

        passages = answer_passages(explanation, self.gold or ())
        long = is_long_text(passages)
        for finding, passage in zip(grounding.passages, passages, strict=True):
            name = SheetWord(f"{clean_text(passage.name)}   ", "bold")
            role = SheetWord(passage_role_in_answer(finding), "quiet")
            self.skip(0.12)
            self.write([name, role], SMALL)

            needed = finding.selected or finding.necessary
            pieces: Sequence[TextPiece] = passage.pieces
            if long or not needed:
                pieces = shorten_text_pieces(pieces, explanation, tail=needed)
            words = self.words_of_pieces(pieces, explanation)
            if needed:
                self.write(words)
            else:
                in_grey = [replace(word, style="quiet") for word in words]
                self.write(in_grey, 10.0)

    def words_of_pieces(
        self,
        pieces: Sequence[TextPiece],
        explanation: Explanation,
        difference: MethodDifference | None = None,
    ) -> list[SheetWord]:
        """Pieces as they look."""
        words = []
        for number, piece in enumerate(pieces):
            word = self.word_of_piece(piece, explanation, difference)
            words.append(replace(word, piece=number))
        return words

    def word_of_piece(
        self, piece: TextPiece, explanation: Explanation, difference: MethodDifference | None
    ) -> SheetWord:
        """A piece as it looks."""
        style = STYLES.get(piece.kind, "plain")
        is_selected = is_selected_piece(piece, explanation)
        colour: RGB | None = None
        line = 0
        if is_rationale(explanation):
            if is_selected:
                style = "kept" if self.gold is None else "plain"
                colour = FOR_TARGET
        elif difference is not None:
            colour = tint_of_piece(piece, difference.weights, DIFFERENCE_HUES)
            if colour:
                line = int(np.sign(strongest_weight_of_piece(piece, difference.weights)))
        elif is_unproved_selection(explanation):
            if is_selected:
                colour = SELECTED_COLOUR
        else:
            weights = relative_weights(explanation.scores)
            colour = tint_of_piece(piece, weights, SCORE_HUES)

        text = clean_text(piece.text)
        if piece.kind == "outcome":
            text = f' → "{text}"'
        elif piece.kind == "special":
            text = f" {text} "
        return SheetWord(text, style, colour=colour, line=line, heavy=piece.gold)


def is_long_text(passages: Sequence[TextPassage]) -> bool:
    """Whether texts are so long that what is far from a rationale is left out."""
    length = 0
    for passage in passages:
        length += sum(len(piece.text) for piece in passage.pieces)
    return length > LONGEST


def tint_of_piece(piece: TextPiece, weights: np.ndarray, hues: HuePair) -> RGB | None:
    """The colour behind a piece on white paper; none behind what has no units or little weight."""
    if not piece.units:
        return None
    weight = strongest_weight_of_piece(piece, weights)
    return background_colour(weight, PAPER_COLOURS["light"], hues)


# -- the path of the search ---------------------------------------------------------------------------------


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
    colour, bar_colour = INK, KEPT
    if step.number is None:  # the whole context
        colour, bar_colour = QUIET, FAINT
    room = NUMBER - CHANGE - 0.5
    change = cut_text_to_inches(sheet, step.change(), room)
    draw_path_cell(sheet, change, CHANGE, colour=colour)
    draw_path_cell(sheet, str(step.size), NUMBER, align="right", colour=colour)
    draw_path_cell(sheet, step.figure, FIGURE, align="right", colour=colour)
    if step.weight is not None:
        bar = SheetBar(
            left=BAR,
            top=sheet.height + LINE * 0.22,
            width=max(0.01, LONGEST_BAR * step.weight),
            height=LINE * 0.56,
            colour=bar_colour,
        )
        sheet.marks.append(bar)
    if step.enough:
        draw_path_cell(sheet, "✓", TICK, colour=colour)


def draw_path_cell(
    sheet: TypesetSheet, text: str, across: float, *, align: str = "left", colour: str = INK
) -> None:
    """Write into the present row."""
    label = SheetLabel(
        text,
        across=across,
        baseline=sheet.height + LINE * 0.7,
        size=SIZE,
        colour=colour,
        align=align,
    )
    sheet.marks.append(label)


def cut_text_to_inches(sheet: TypesetSheet, text: str, room: float) -> str:
    """A text cut to a width."""
    while sheet.ruler(text, SIZE) > room and len(text) > 2:
        text = text[:-2].rstrip() + "…"
    return text
