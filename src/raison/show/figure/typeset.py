"""A typeset sheet that grows downwards: words set line by line, labels, bars and boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from raison.show.colour_scale import RGB, hexadecimal_colour, ink_colour
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
    colour: RGB | None = None  # behind it
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
            return hexadecimal_colour(ink_colour(self.colour))
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

    colour: RGB
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
            facecolor=hexadecimal_colour(self.colour),
            boxstyle="round,pad=0,rounding_size=0.04",
            edgecolor="none",
            zorder=1,
        )
        axes.add_patch(patch)
        if self.line:
            share = 0.97 if self.line > 0 else 0.03
            down = self.top + self.height * share
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
        left = self.left - AROUND
        right = self.right + AROUND
        for other in neighbours:
            if other.top != self.top:
                continue
            if abs(other.right - self.left) < AROUND:
                left = self.left
            if abs(other.left - self.right) < AROUND:
                right = self.right
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
        for word in self.split_all_to_fit(words, size, right - left):
            if "\n" in word.text:
                pen.break_line(left, line)
                continue
            width = self.width_of(word, size)
            if word.text.isspace():
                if pen.across > left:
                    pen.space += width
                continue
            is_too_wide = pen.across + pen.space + width > right + 1e-6
            if is_too_wide and pen.across > left:
                pen.break_line(left, line)
            start = pen.across + pen.space
            end = pen.across + pen.space + width
            pen.across, pen.space = end, 0.0
            self.colour_behind(word, start, end, pen, line)
            self.put(word, start, end, pen.top, size)
        self.height = pen.top + line

    def write_line(self, phrases: Sequence[str], style: str, size: float) -> None:
        """Set phrases of one style with dots between them."""
        self.write([SheetWord(" · ".join(phrases), style)], size)

    def split_all_to_fit(
        self, words: Sequence[SheetWord], size: float, room: float
    ) -> Iterator[SheetWord]:
        """All words, each in parts that fit into a line."""
        for word in words:
            yield from self.split_to_fit(word, size, room)

    def width_of(self, word: SheetWord, size: float) -> float:
        """Inches of a word, with the white space in it."""
        with_bars = self.ruler(f"|{word.text}|", size, word.weight)
        bars = self.ruler("||", size, word.weight)
        return with_bars - bars

    def colour_behind(
        self, word: SheetWord, start: float, end: float, pen: SheetPen, line: float
    ) -> None:
        """Put a word's colour behind it; the colour of the word before grows where both are of one piece."""
        if word.colour and pen.piece == word.piece:
            self.boxes[-1].right = end
        elif word.colour:
            box = SheetBox(
                word.colour,
                left=start,
                right=end,
                top=pen.top + 0.09 * line,
                height=0.86 * line,
                line=word.line,
            )
            self.boxes.append(box)
        pen.piece = word.piece

    def put(self, word: SheetWord, start: float, end: float, top: float, size: float) -> None:
        """Set one word at a place."""
        line = LINE * size / TEXT
        if word.style == "given":
            self.marks.append(SheetUnderline(start, end, top + line * 0.88))
        label = SheetLabel(
            word.text,
            across=start,
            baseline=top + line * 0.7,
            size=size,
            colour=word.ink,
            weight=word.weight,
            zorder=2,
        )
        self.marks.append(label)

    def split_to_fit(self, word: SheetWord, size: float, room: float) -> Iterator[SheetWord]:
        """A word in parts: at its spaces, and where it is wider than a line."""
        for part in split_at_spaces(word.text):
            while len(part) > 1:
                # measured as far as a line may go, or a long word would be measured again and again to its end
                measured = part[:FARTHEST]
                width = self.ruler(measured, size, "bold")
                if width <= room:
                    break
                fits = max(1, int(len(measured) * room / width) - 1)
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
        at_line_break = last == "\n" or following in ("", "\n")
        at_space = last.isspace() != following.isspace()
        before_han = following > "\u2e7f"
        if at_line_break or at_space or before_han:
            yield text[start:end]
            start = end
