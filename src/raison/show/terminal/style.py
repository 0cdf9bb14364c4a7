"""The style of a terminal: signs, tints, bars and flowing text; colours where there are colours, else signs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.style import Style
from rich.text import Text

from raison.core.records import Explanation
from raison.show.colour_scale import (
    DIFFERENCE_HUES,
    FOR_TARGET,
    PAPER_COLOURS,
    RGB,
    SCORE_HUES,
    SILENT_WEIGHT,
    HuePair,
    background_colour,
    has_negative_scores,
    hexadecimal_colour,
    ink_colour,
    relative_weights,
)
from raison.show.method_difference import MethodDifference
from raison.show.text_formats import clean_text
from raison.show.text_pieces import (
    TextPassage,
    TextPiece,
    is_selected_piece,
    is_unproved_selection,
    strongest_weight_of_piece,
)

__all__ = ["TerminalStyle", "terminal_console"]

# cells of a line
USUAL = 80  # where nobody says how many there are
NARROWEST = 20  # that anything needs
EIGHTHS = " ▏▎▍▌▋▊▉"
GREY: RGB = (128, 128, 128)
DIM, BOLD, PLAIN = Style(dim=True), Style(bold=True), Style.null()
KEPT = Style(
    color=hexadecimal_colour(ink_colour(FOR_TARGET)),
    bgcolor=hexadecimal_colour(FOR_TARGET),
    bold=True,
)
FAINT = 0.35  # on an unknown paper weights below colour the letters, weights above the background

StyledText = tuple[str, Style]


def terminal_console(highlight: bool = True) -> Console:
    """The terminal, in which there is room for something whatever COLUMNS says (cron and some editors set it to 0)."""
    console = Console(highlight=highlight)
    if console.width <= 0:
        console.width = USUAL
    elif console.width < NARROWEST:
        console.width = NARROWEST
    return console


@dataclass(frozen=True)
class TerminalStyle:
    """What a console can show, and how pieces of text look there."""

    coloured: bool
    paper: str | None  # dark | light | None: unknown
    ascii: bool  # the stream can't carry block characters

    @classmethod
    def of(cls, console: Console, paper: str | None = None) -> TerminalStyle:
        """What `console` can show; `paper` is dark or light where the terminal's background is known."""
        # 16 colours are the user's own palette: there a shade means nothing and contrast can't be promised
        many_colours = console.color_system in ("256", "truecolor")
        return cls(
            coloured=many_colours and not console.no_color,
            paper=paper or paper_of_terminal(os.environ.get("COLORFGBG", "")),
            ascii=console.options.ascii_only,
        )

    # -- signs --------------------------------------------------------------------------------------------

    def either(self, sign: str, plain: str) -> str:
        """A sign, or what stands for it in a stream that can't carry it."""
        return plain if self.ascii else sign

    @property
    def dot(self) -> str:
        """What stands between facts in a line."""
        return self.either(" · ", " | ")

    @property
    def dots(self) -> str:
        """What ends a name that was cut."""
        return self.either("…", "...")

    @property
    def arrow(self) -> str:
        return self.either("→", "->")

    @property
    def minus(self) -> str:
        return self.either("−", "-")

    # -- colours ------------------------------------------------------------------------------------------

    def in_colour(self, style: Style, otherwise: Style = PLAIN) -> Style:
        """A style with colours, or what stands for it where there are none."""
        return style if self.coloured else otherwise

    @property
    def kept(self) -> Style:
        """A rationale has one colour: its units are in or out."""
        return self.in_colour(KEPT)

    @property
    def given(self) -> Style:
        """Quieter than `kept`, on any paper: what is read anyway."""
        hue = hexadecimal_colour(mix_colours(FOR_TARGET, GREY))
        return self.in_colour(Style(color=hue, underline=True))

    @property
    def warning(self) -> Style:
        return self.in_colour(Style(color="yellow", bold=True), BOLD)

    def tint(self, weight: float, hues: HuePair = SCORE_HUES) -> Style:
        """The style of a weight; stronger is always more striking, on dark and on light paper."""
        if not self.coloured:
            return PLAIN
        if self.paper is None and SILENT_WEIGHT <= abs(weight) < FAINT:
            letters = mix_colours(hue_of_weight(weight, hues), GREY)
            return Style(color=hexadecimal_colour(letters))
        paper = GREY
        if self.paper:
            paper = PAPER_COLOURS[self.paper]
        colour = background_colour(weight, paper, hues)
        if colour is None:
            return PLAIN
        ink = ink_colour(colour)
        return Style(
            color=hexadecimal_colour(ink),
            bgcolor=hexadecimal_colour(colour),
        )

    def bar(self, weight: float, width: int, hues: HuePair = SCORE_HUES) -> Text:
        """A bar of block characters, `width` cells for a weight of 1, never empty for a weight above 0."""
        eighths = 0
        if weight:
            eighths = max(1, round(abs(weight) * width * 8))
        full, rest = divmod(eighths, 8)
        blocks = "█" * full + EIGHTHS[rest].strip()
        if self.ascii:
            blocks = "#" * (full + (rest > 0))
        hue = hue_of_weight(weight, hues)
        return Text(blocks, self.in_colour(Style(color=hexadecimal_colour(hue))))

    # -- flowing text -------------------------------------------------------------------------------------

    def scored_text(
        self, passage: TextPassage, explanation: Explanation, marked: frozenset[int]
    ) -> Text:
        """The flowing text in tints; without colours the `marked` units carry their sign. A selection has no tints."""
        weights = relative_weights(explanation.scores)
        if is_unproved_selection(explanation):
            weights = np.zeros(len(explanation.units))

        def tinted(piece: TextPiece) -> StyledText:
            shown, style = self.piece_without_score(piece, explanation)
            if not piece.units:
                return shown, style
            if not self.coloured:
                return piece_with_score_sign(shown, piece, explanation, marked), style
            return shown, style_on_tint(self.tint(strongest_weight_of_piece(piece, weights)), style)

        return self.join_pieces(passage.pieces, tinted)

    def difference_text(
        self, passage: TextPassage, difference: MethodDifference, marked: frozenset[int]
    ) -> Text:
        """The flowing text in green, underlined, where the first method gives more, and in red where the second does;
        without colours the `marked` units carry a sign."""
        weights = difference.weights

        def tinted(piece: TextPiece) -> StyledText:
            shown, style = self.piece_without_score(piece)
            if not piece.units:
                return shown, style
            weight = strongest_weight_of_piece(piece, weights)
            if not self.coloured:
                if marked.intersection(piece.units):
                    shown = surround_with_signs(shown, left=f"[{sign_of_weight(weight)}", right="]")
                return shown, style
            tint = self.tint(weight, DIFFERENCE_HUES)
            style = style_on_tint(tint, style)
            if tint and weight > 0:
                style += Style(underline=True)
            return shown, style

        return self.join_pieces(passage.pieces, tinted)

    def rationale_text(self, pieces: Sequence[TextPiece], explanation: Explanation) -> Text:
        """The flowing text with the rationale filled, or between stars, and what is kept anyway underlined."""

        def filled(piece: TextPiece) -> StyledText:
            shown, style = self.piece_without_score(piece, explanation)
            sign, colours = "", style
            if is_selected_piece(piece, explanation):
                sign, colours = "*", self.kept
            elif piece.kind == "given":
                sign, colours = "_", self.given
            if self.coloured:
                return shown, colours
            return surround_with_signs(shown, left=sign, right=sign), style

        return self.join_pieces(pieces, filled)

    def join_pieces(
        self, pieces: Sequence[TextPiece], style_piece: Callable[[TextPiece], StyledText]
    ) -> Text:
        """Pieces behind each other; an outcome stands in quotes behind an arrow."""
        text = Text(overflow="fold")
        in_outcome = False
        for piece in pieces:
            is_outcome = piece.kind == "outcome"
            if is_outcome and not in_outcome:
                text.append(f" {self.arrow} ", DIM)
                text.append('"', BOLD)
            elif in_outcome and not is_outcome:
                text.append('"', BOLD)
            in_outcome = is_outcome

            shown, style = style_piece(piece)
            if piece.kind == "special":  # stands apart from the words around it
                if text and not text.plain[-1].isspace():
                    text.append(" ")
                text.append(shown, style)
                text.append(" ")
            else:
                text.append(shown, style)
        if in_outcome:
            text.append('"', BOLD)
        return text

    def piece_without_score(
        self, piece: TextPiece, explanation: Explanation | None = None
    ) -> StyledText:
        """Characters and style from what a piece is, and whether the explanation selects it, apart from its score."""
        shown = clean_text(piece.text)
        if piece.kind in ("unseen", "unread"):
            if not self.coloured:
                shown = surround_with_signs(shown, left="{", right="}")
            return shown, DIM
        if piece.kind == "target":
            shown = surround_with_signs(
                shown, left=self.either("‹", "<"), right=self.either("›", ">")
            )
        if explanation is not None and is_selected_piece(piece, explanation):
            return shown, Style(bold=True, underline=True)
        return shown, {"special": DIM, "outcome": BOLD}.get(piece.kind, PLAIN)


def style_on_tint(tint: Style, style: Style) -> Style:
    """The style of a piece on the tint of its score; dim letters would be lost there."""
    if tint and style == DIM:
        return tint
    return tint + style


def piece_with_score_sign(
    shown: str, piece: TextPiece, explanation: Explanation, marked: frozenset[int]
) -> str:
    """`*great*` for a selected unit; `[+great]` or `[-dull]` for a strong one, `[great]` where no score is negative."""
    if is_selected_piece(piece, explanation):
        return surround_with_signs(shown, left="*", right="*")
    strong = [unit for unit in piece.units if unit in marked]
    if explanation.selected is not None or not strong:
        return shown
    sign = ""
    if has_negative_scores(explanation.scores):
        sign = sign_of_weight(explanation.scores[strong[0]])
    return surround_with_signs(shown, left=f"[{sign}", right="]")


def sign_of_weight(number: float) -> str:
    """`+` above 0, `-` below."""
    return "+" if number > 0 else "-"


def surround_with_signs(shown: str, *, left: str, right: str) -> str:
    """The characters with signs around them; white space stays outside."""
    core = shown.strip()
    if not core:
        return shown
    return shown.replace(core, left + core + right, 1)


def hue_of_weight(weight: float, hues: HuePair) -> RGB:
    """The hue of a weight by its sign."""
    above, below = hues
    return above if weight > 0 else below


def mix_colours(one: RGB, other: RGB) -> RGB:
    """Three parts of one colour and one of another: letters of middle brightness read on any paper."""
    red, green, blue = ((3 * a + b) // 4 for a, b in zip(one, other, strict=True))
    return red, green, blue


def paper_of_terminal(setting: str) -> str | None:
    """Dark or light, from what some terminals put into COLORFGBG ("15;0": white on black)."""
    _, _, last = setting.rpartition(";")
    if not last.isdigit():
        return None
    number = int(last)
    if number == 7 or 9 <= number <= 15:
        return "light"
    return "dark"
