"""How pieces look in a terminal: colours where there are colours, signs where there are none."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.style import Style
from rich.text import Text

from raison.core.records import Explanation
from raison.show import scale
from raison.show.difference import Difference
from raison.show.spans import Passage, Piece, selected, selection
from raison.show.wording import clean

__all__ = ["Look", "screen"]

USUAL, NARROWEST = 80, 20  # cells of a line: where nobody says how many there are, and that anything needs
EIGHTHS = " ▏▎▍▌▋▊▉"
GREY: scale.RGB = (128, 128, 128)
DIM, BOLD = Style(dim=True), Style(bold=True)
KEPT = Style(color=scale.hexadecimal(scale.ink(scale.FOR)), bgcolor=scale.hexadecimal(scale.FOR), bold=True)
FAINT = 0.35  # on an unknown paper weights below colour the letters, weights above the background


def screen(highlight: bool = True) -> Console:
    """The terminal, in which there is room for something whatever COLUMNS says (cron and some editors set it to 0)."""
    console = Console(highlight=highlight)
    if console.width < NARROWEST:
        console.width = NARROWEST if console.width > 0 else USUAL
    return console


@dataclass(frozen=True)
class Look:
    """What a console can show."""

    coloured: bool
    paper: str | None  # dark | light | None: unknown
    ascii: bool  # the stream can't carry block characters

    @classmethod
    def of(cls, console: Console, paper: str | None = None) -> Look:
        # 16 colours are the user's own palette: there a shade means nothing and contrast can't be promised
        rich_in_colour = console.color_system in ("256", "truecolor") and not console.no_color
        return cls(rich_in_colour, paper or paper_of(os.environ.get("COLORFGBG", "")), console.options.ascii_only)

    @property
    def dot(self) -> str:
        return self.either(" · ", " | ")

    def either(self, sign: str, plain: str) -> str:
        """A sign, or what stands for it in a stream that can't carry it."""
        return plain if self.ascii else sign

    @property
    def kept(self) -> Style:
        """A rationale has one colour: its units are in or out."""
        return KEPT if self.coloured else Style.null()

    @property
    def given(self) -> Style:
        """Quieter than `kept`, on any paper: what is read anyway."""
        hue = scale.hexadecimal(mixed(scale.FOR, GREY))
        return Style(color=hue, underline=True) if self.coloured else Style.null()

    @property
    def warning(self) -> Style:
        return Style(color="yellow", bold=True) if self.coloured else BOLD

    def tint(self, weight: float, hues: tuple[scale.RGB, scale.RGB] = scale.SCORES) -> Style:
        """The style of a weight; stronger is always more striking, on dark and on light paper."""
        if not self.coloured:
            return Style.null()
        if self.paper is None and scale.SILENT <= abs(weight) < FAINT:
            hue = hues[0] if weight > 0 else hues[1]
            return Style(color=scale.hexadecimal(mixed(hue, GREY)))
        colour = scale.background(weight, scale.PAPERS[self.paper] if self.paper else GREY, hues)
        if colour is None:
            return Style.null()
        return Style(color=scale.hexadecimal(scale.ink(colour)), bgcolor=scale.hexadecimal(colour))

    def bar(self, weight: float, width: int, hues: tuple[scale.RGB, scale.RGB] = scale.SCORES) -> Text:
        """A bar of block characters, `width` cells for a weight of 1, never empty for a weight above 0."""
        eighths = max(1, round(abs(weight) * width * 8)) if weight else 0
        full, rest = divmod(eighths, 8)
        blocks = "#" * (full + (rest > 0)) if self.ascii else "█" * full + EIGHTHS[rest].strip()
        hue = scale.hexadecimal(hues[0] if weight > 0 else hues[1])
        return Text(blocks, Style(color=hue) if self.coloured else Style.null())

    def passage(self, passage: Passage, explanation: Explanation, marked: frozenset[int]) -> Text:
        """The flowing text in tints; without colours the `marked` units carry their sign. A selection has no tints."""
        shades = not selection(explanation)
        weights = scale.weights(explanation.scores) if shades else np.zeros(len(explanation.units))

        def tinted(piece: Piece) -> tuple[str, Style]:
            shown, style = self.dressed(piece, explanation)
            if not piece.units:
                return shown, style
            tint = self.tint(max((float(weights[unit]) for unit in piece.units), key=abs))
            style = tint if tint and style == DIM else tint + style  # dim letters would be lost on a tint
            return shown if self.coloured else signed(shown, piece, explanation, marked), style

        return self.joined(passage.pieces, tinted)

    def difference(self, passage: Passage, difference: Difference, marked: frozenset[int]) -> Text:
        """The flowing text in green, underlined, where the first method gives more, and in red where the second does;
        without colours the `marked` units carry a sign."""
        weights = difference.weights

        def tinted(piece: Piece) -> tuple[str, Style]:
            shown, style = self.dressed(piece)
            if not piece.units:
                return shown, style
            weight = max((float(weights[unit]) for unit in piece.units), key=abs)
            if not self.coloured:
                strong = any(unit in marked for unit in piece.units)
                return (around(shown, f"[{'+' if weight > 0 else '-'}", "]") if strong else shown), style
            tint = self.tint(weight, scale.DIFFERENCES)
            style = tint if tint and style == DIM else tint + style
            return shown, style + Style(underline=True) if tint and weight > 0 else style

        return self.joined(passage.pieces, tinted)

    def rationale(self, pieces: Sequence[Piece], explanation: Explanation) -> Text:
        """The flowing text with the rationale filled, or between stars, and what is kept anyway underlined."""

        def filled(piece: Piece) -> tuple[str, Style]:
            shown, style = self.dressed(piece, explanation)
            if selected(piece, explanation):
                return (shown, self.kept) if self.coloured else (around(shown, "*", "*"), style)
            if piece.kind == "given":
                return (shown, self.given) if self.coloured else (around(shown, "_", "_"), style)
            return shown, style

        return self.joined(pieces, filled)

    def joined(self, pieces: Sequence[Piece], dress: Callable[[Piece], tuple[str, Style]]) -> Text:
        """Pieces behind each other; an outcome stands in quotes behind an arrow."""
        text = Text(overflow="fold")
        written = False
        for piece in pieces:
            if written and piece.kind != "outcome":
                text.append('"', BOLD)
            elif piece.kind == "outcome" and not written:
                text.append(f" {self.either('→', '->')} ", DIM).append('"', BOLD)
            written = piece.kind == "outcome"
            shown, style = dress(piece)
            if piece.kind == "special":
                text.append("" if text.plain[-1:].isspace() or not text else " ").append(shown, style).append(" ")
            else:
                text.append(shown, style)
        return text.append('"', BOLD) if written else text

    def dressed(self, piece: Piece, explanation: Explanation | None = None) -> tuple[str, Style]:
        """Characters and style from what a piece is, and whether the explanation selects it, apart from its score."""
        shown = clean(piece.text)
        if piece.kind in ("unseen", "unread"):
            return (shown if self.coloured else around(shown, "{", "}")), DIM
        if piece.kind == "target":
            shown = around(shown, *("<>" if self.ascii else "‹›"))
        if explanation is not None and selected(piece, explanation):
            return shown, Style(bold=True, underline=True)
        return shown, {"special": DIM, "outcome": BOLD}.get(piece.kind, Style.null())


def signed(shown: str, piece: Piece, explanation: Explanation, marked: frozenset[int]) -> str:
    """`*great*` for a selected unit; `[+great]` or `[-dull]` for a strong one, `[great]` where no score is negative."""
    if explanation.selected is not None:
        return around(shown, "*", "*") if selected(piece, explanation) else shown
    strong = [unit for unit in piece.units if unit in marked]
    if not strong:
        return shown
    sign = "+" if explanation.scores[strong[0]] > 0 else "-"
    return around(shown, f"[{sign if scale.signed(explanation.scores) else ''}", "]")


def around(shown: str, left: str, right: str) -> str:
    """The characters with signs around them; white space stays outside."""
    core = shown.strip()
    return shown.replace(core, left + core + right, 1) if core else shown


def mixed(one: scale.RGB, other: scale.RGB) -> scale.RGB:
    """Three parts of one colour and one of another: letters of middle brightness read on any paper."""
    r, g, b = ((3 * a + b) // 4 for a, b in zip(one, other, strict=True))
    return r, g, b


def paper_of(setting: str) -> str | None:
    """Dark or light, from what some terminals put into COLORFGBG ("15;0": white on black)."""
    last = setting.rpartition(";")[2]
    if not last.isdigit():
        return None
    return "light" if int(last) == 7 or 9 <= int(last) <= 15 else "dark"
