"""Words set line by line on a sheet that grows downwards; what is drawn waits until its height is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from raison.show import colour_scale
from raison.show.figure.canvas import (
    ALARM,
    HATCH,
    INK,
    MARGIN,
    QUIET,
    TEXT,
    WordRuler,
    figure_canvas,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "LINE",
    "WIDTH",
    "SheetBar",
    "SheetBox",
    "SheetLabel",
    "SheetUnderline",
    "SheetWord",
    "TypesetSheet",
]

WIDTH = 7.5  # inches
LINE = 0.29  # inches of a line of TEXT
AROUND = 0.02  # inches of colour on both sides of a word
FARTHEST = 400  # letters that a line may hold
INKS = {"quiet": QUIET, "given": HATCH, "alarm": ALARM}  # of styles; others are in black
BOLD = ("bold", "kept", "alarm")


@dataclass(frozen=True)
class SheetWord:
    """Characters that are not broken, and how they look."""

    text: str
    style: str  # plain | kept | given | quiet | bold | alarm
    colour: colour_scale.RGB | None = None  # behind it
    piece: int = -1  # words of one piece share what is behind them
    line: int = 0  # 1: a line below it, -1: above
    heavy: bool = False  # in bold, whatever its style

    @property
    def weight(self) -> str:
        return "bold" if self.heavy or self.style in BOLD else "normal"

    @property
    def ink(self) -> str:
        """The colour of the letters."""
        if self.colour:
            return colour_scale.hexadecimal_colour(colour_scale.ink_colour(self.colour))
        return INKS.get(self.style, INK)


@dataclass(frozen=True)
class SheetLabel:
    """Characters at a place."""

    text: str
    across: float
    baseline: float
    size: float
    colour: str
    weight: str = "normal"
    align: str = "left"
    zorder: int = 3

    def draw(self, axes: Axes) -> None:
        axes.text(
            self.across,
            self.baseline,
            self.text,
            fontsize=self.size,
            fontweight=self.weight,
            color=self.colour,
            ha=self.align,
            va="baseline",
            zorder=self.zorder,
        )


@dataclass(frozen=True)
class SheetUnderline:
    """A line below a word."""

    left: float
    right: float
    down: float

    def draw(self, axes: Axes) -> None:
        axes.plot([self.left, self.right], [self.down, self.down], color=HATCH, lw=1.2)


@dataclass(frozen=True)
class SheetBar:
    """A bar in a table."""

    left: float
    top: float
    width: float
    height: float
    colour: str

    def draw(self, axes: Axes) -> None:
        from matplotlib.patches import Rectangle

        axes.add_patch(
            Rectangle(
                (self.left, self.top),
                self.width,
                self.height,
                facecolor=self.colour,
                edgecolor="none",
            )
        )


@dataclass
class SheetBox:
    """A colour behind some words of a line; it grows with them."""

    colour: colour_scale.RGB
    left: float
    right: float
    top: float
    height: float
    line: int = 0

    def draw(self, axes: Axes, neighbours: Sequence[SheetBox]) -> None:
        from matplotlib.patches import FancyBboxPatch

        left, right = self.edges(neighbours)
        patch = FancyBboxPatch(
            (left, self.top),
            right - left,
            self.height,
            facecolor=colour_scale.hexadecimal_colour(self.colour),
            boxstyle="round,pad=0,rounding_size=0.04",
            edgecolor="none",
            zorder=1,
        )
        axes.add_patch(patch)
        if self.line:
            down = self.top + self.height * (0.97 if self.line > 0 else 0.03)
            axes.plot(
                [self.left, self.right],
                [down, down],
                color=INK,
                lw=1.1,
                solid_capstyle="butt",
                zorder=2,
            )

    def edges(self, neighbours: Sequence[SheetBox]) -> tuple[float, float]:
        """A colour reaches out beside its word, unless another one begins there: it would cover letters."""
        beside = [other for other in neighbours if other.top == self.top]
        meets_left = any(abs(other.right - self.left) < AROUND for other in beside)
        meets_right = any(abs(other.left - self.right) < AROUND for other in beside)
        left = self.left if meets_left else self.left - AROUND
        right = self.right if meets_right else self.right + AROUND
        return left, right


@dataclass
class SheetPen:
    """Where the next word is set."""

    across: float
    top: float
    space: float = 0.0  # white space waits for the word behind it
    piece: int | None = None  # of the word before on this line

    def break_line(self, left: float, line: float) -> None:
        self.across, self.top, self.space, self.piece = left, self.top + line, 0.0, None


class TypesetSheet:
    """What is set so far; `height` is where the next line begins."""

    def __init__(self) -> None:
        self.ruler = WordRuler()
        self.height = MARGIN
        self.marks: list[SheetLabel | SheetUnderline | SheetBar] = []
        self.boxes: list[SheetBox] = []

    def skip(self, inches: float) -> None:
        """Leave some room free."""
        self.height += inches

    def write(self, words: Sequence[SheetWord], size: float = TEXT) -> None:
        """Set flowing words with their colours; a word that is too long for a line is broken."""
        left, right, line = MARGIN, WIDTH - MARGIN, LINE * size / TEXT
        pen = SheetPen(across=left, top=self.height)
        parts = [part for word in words for part in self.split_to_fit(word, size, right - left)]
        for word in parts:
            if "\n" in word.text:
                pen.break_line(left, line)
                continue
            width = self.width_of(word, size)
            if word.text.isspace():
                pen.space += width if pen.across > left else 0.0
                continue
            if pen.across + pen.space + width > right + 1e-6 and pen.across > left:
                pen.break_line(left, line)
            start = pen.across + pen.space
            end = pen.across + pen.space + width
            pen.across, pen.space = end, 0.0
            self.colour_behind(word, start, end, pen, line)
            self.put(word, start, end, pen.top, size)
        self.height = pen.top + line

    def width_of(self, word: SheetWord, size: float) -> float:
        """Inches of a word, with the white space in it."""
        return self.ruler(f"|{word.text}|", size, word.weight) - self.ruler("||", size, word.weight)

    def colour_behind(
        self, word: SheetWord, start: float, end: float, pen: SheetPen, line: float
    ) -> None:
        """Put a word's colour behind it; the colour of the word before grows where both are of one piece."""
        if word.colour and pen.piece == word.piece:
            self.boxes[-1].right = end
        elif word.colour:
            self.boxes.append(
                SheetBox(word.colour, start, end, pen.top + 0.09 * line, 0.86 * line, word.line)
            )
        pen.piece = word.piece

    def put(self, word: SheetWord, start: float, end: float, top: float, size: float) -> None:
        """Set one word at a place."""
        line = LINE * size / TEXT
        if word.style == "given":
            self.marks.append(SheetUnderline(start, end, top + line * 0.88))
        label = SheetLabel(
            word.text, start, top + line * 0.7, size, word.ink, word.weight, zorder=2
        )
        self.marks.append(label)

    def split_to_fit(self, word: SheetWord, size: float, room: float) -> Iterator[SheetWord]:
        """A word in parts: at its spaces, and where it is wider than a line."""
        for part in split_at_spaces(word.text):
            # measured as far as a line may go, or a long word would be measured again and again to its end
            while len(part) > 1 and (width := self.ruler(part[:FARTHEST], size, "bold")) > room:
                fits = max(1, int(min(len(part), FARTHEST) * room / width) - 1)
                yield replace(word, text=part[:fits])
                part = part[fits:]
            yield replace(word, text=part)

    def figure(self) -> Figure:
        """The picture of all that was set."""
        figure, axes = figure_canvas(WIDTH, self.height + MARGIN - 0.1)
        for mark in self.marks:
            mark.draw(axes)
        for box in self.boxes:
            box.draw(axes, self.boxes)
        return figure


def split_at_spaces(text: str) -> Iterator[str]:
    """Runs of white space and runs of anything else; line breaks alone, and Han and kana one by one."""
    start = 0
    for end in range(1, len(text) + 1):
        last, following = text[end - 1], text[end : end + 1]
        if (
            last == "\n"
            or following in ("", "\n")
            or last.isspace() != following.isspace()
            or following > "\u2e7f"
        ):
            yield text[start:end]
            start = end
