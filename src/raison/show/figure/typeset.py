"""Explanations as a picture: words set line by line, with the rationale marked, and the path of the search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raison.core.findings import PassageFinding
from raison.core.records import Explanation, Span
from raison.show import certificate as proof
from raison.show import scale
from raison.show.difference import Difference
from raison.show.figure.canvas import ALARM, FAINT, HATCH, INK, KEPT, MARGIN, QUIET, SMALL, TEXT, Ruler, canvas
from raison.show.search_path import Step, excerpt, measure, path
from raison.show.spans import Piece, flow, grounded, selected, selection, shortened
from raison.show.wording import clean, headline, plural, provenance

__all__ = ["Leaf", "Word"]

WIDTH = 7.5  # inches
LINE = 0.29  # inches of a line of TEXT
AROUND = 0.02  # inches of colour on both sides of a word
FARTHEST = 400  # letters that a line may hold
LONGEST = 4000  # characters of a text with a rationale; of a longer one, what is far from it is left out


@dataclass(frozen=True)
class Word:
    """Characters that are not broken, and how they look."""

    text: str
    style: str  # plain | kept | given | quiet | bold | alarm
    colour: scale.RGB | None = None  # behind it
    piece: int = -1  # words of one piece share what is behind them
    line: int = 0  # 1: a line below it, -1: above
    heavy: bool = False  # in bold, whatever its style


@dataclass
class Box:
    """A colour behind some words of a line; it grows with them."""

    colour: scale.RGB
    left: float
    right: float
    top: float
    height: float
    line: int = 0


class Leaf:
    """One explanation from top to bottom; what is drawn waits until the height is known.

    With `gold`, bold letters are kept for what people marked (P0, Figures 5 and 9).
    """

    def __init__(self, explanation: Explanation, gold: Sequence[Span] | None = None):
        self.explanation = explanation
        self.gold = gold
        self.ruler = Ruler()
        self.height = MARGIN
        self.marks: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.behind: list[Box] = []

    def drawn(self) -> Any:
        explanation = self.explanation
        rationale = proof.is_rationale(explanation)
        self.head()
        self.words([Word(" · ".join(provenance(explanation)), "quiet")], SMALL)
        for warning in proof.warnings(explanation) if rationale else ():
            self.words([Word(warning, "alarm")], 10.0)
        self.height += 0.15
        self.texts(explanation)
        self.legend(rationale)
        if selection(explanation):
            self.height += 0.1
            self.selected(explanation)
        if rationale:
            self.height += 0.15
            if steps := path(explanation):
                self.path(excerpt(steps))
                self.height += 0.1
            self.words([Word(" · ".join(proof.proof_in_words(explanation)), "plain")], 10.0)
            self.words([Word(" · ".join(proof.effort_in_words(explanation)), "quiet")], SMALL)
        return self.figure()

    def head(self) -> None:
        """The model and what it says."""
        first, *rest = headline(self.explanation)
        self.words([Word(f"{clean(self.explanation.model)} · ", "quiet"), Word(" · ".join([first, *rest]), "bold")])

    def selected(self, explanation: Explanation) -> None:
        """How much of the text was selected, on the colour of what was."""
        size = plural(len(explanation.units), explanation.units.level)
        said = f"rationale {len(proof.chosen_units(explanation))} of {size}"
        self.words([Word(said, "plain", scale.SELECTED, 0)], SMALL)

    def legend(self, rationale: bool) -> None:
        """What bold letters mean, where they tell what people marked."""
        if self.gold is None:
            return
        self.height += 0.08
        filled = [Word("filled", "plain", scale.FOR, 0), Word("  in the rationale      ", "quiet")] if rationale else []
        self.words([*filled, Word("bold", "plain", heavy=True), Word("  marked by people", "quiet")], SMALL)

    def figure(self) -> Any:
        """The picture of all that was set."""
        figure, axes = canvas(WIDTH, self.height + MARGIN - 0.1)
        from matplotlib.patches import FancyBboxPatch, Rectangle

        for kind, place, look in self.marks:
            if kind == "text":
                axes.text(*place, **look)
            elif kind == "line":
                axes.plot(*place, **look)
            else:
                axes.add_patch(Rectangle(*place, **look))
        for box in self.behind:
            left, right = self.edges(box)
            look = {"boxstyle": "round,pad=0,rounding_size=0.04", "edgecolor": "none", "zorder": 1}
            colour = scale.hexadecimal(box.colour)
            axes.add_patch(FancyBboxPatch((left, box.top), right - left, box.height, facecolor=colour, **look))
            if box.line:
                under = box.top + box.height * (0.97 if box.line > 0 else 0.03)
                axes.plot([box.left, box.right], [under, under], color=INK, lw=1.1, solid_capstyle="butt", zorder=2)
        return figure

    def edges(self, box: Box) -> tuple[float, float]:
        """A colour reaches out beside its word, unless another one begins there: it would cover letters."""
        beside = [other for other in self.behind if other.top == box.top]
        left = any(abs(other.right - box.left) < AROUND for other in beside)
        right = any(abs(other.left - box.right) < AROUND for other in beside)
        return box.left - AROUND * (not left), box.right + AROUND * (not right)

    def texts(self, explanation: Explanation, difference: Difference | None = None) -> None:
        """The text, or the passages of an answer under their names; in the colours of a difference, if there is one."""
        grounding = explanation.grounding
        rationale = proof.is_rationale(explanation)
        facts: tuple[PassageFinding, ...] = ()
        if grounding is not None and rationale:
            self.words([Word("question  ", "quiet"), Word(clean(grounding.question), "plain")], 11.0)
            self.words([Word("answer  ", "quiet"), Word(clean(grounding.answer), "bold")], 11.0)
            self.words([Word(clean(grounding.statement), "bold")], 11.0)
            facts, passages = grounding.passages, grounded(explanation, self.gold or ())
        else:
            passages = flow(explanation, self.gold or ())
        long = rationale and sum(len(piece.text) for passage in passages for piece in passage.pieces) > LONGEST
        for place, passage in enumerate(passages):
            if facts:
                self.height += 0.12
                role = proof.role_in_answer(facts[place])
                self.words([Word(f"{clean(passage.name)}   ", "bold"), Word(role, "quiet")], SMALL)
            elif len(passages) > 1:
                self.words([Word(clean(passage.name), "quiet")], SMALL)
            needed = not facts or facts[place].selected or facts[place].necessary
            pieces = shortened(passage.pieces, explanation, tail=needed) if long or not needed else passage.pieces
            words = [self.dressed(piece, number, explanation, difference) for number, piece in enumerate(pieces)]
            self.words(words if needed else [replace(word, style="quiet") for word in words], TEXT if needed else 10.0)

    def dressed(self, piece: Piece, place: int, explanation: Explanation, difference: Difference | None) -> Word:
        """A piece as it looks."""
        rationale = proof.is_rationale(explanation)
        style = {"given": "given", "outcome": "bold", "target": "bold"}.get(piece.kind, "plain")
        if piece.kind in ("special", "unseen", "unread"):
            style = "quiet"
        colour, line = None, 0
        if rationale and selected(piece, explanation):
            style, colour = "kept" if self.gold is None else "plain", scale.FOR
        elif not difference and selection(explanation):
            colour = scale.SELECTED if selected(piece, explanation) else None
        elif not rationale and piece.units:
            weights = difference.weights if difference else scale.weights(explanation.scores)
            hues = scale.DIFFERENCES if difference else scale.SCORES
            weight = max((float(weights[u]) for u in piece.units), key=abs)
            colour = scale.background(weight, scale.PAPERS["light"], hues)
            line = int(np.sign(weight)) if difference and colour else 0
        text = clean(piece.text)
        if piece.kind == "outcome":
            text = f' → "{text}"'
        elif piece.kind == "special":
            text = f" {text} "
        return Word(text, style, colour, place, line, piece.gold)

    def words(self, words: Sequence[Word], size: float = TEXT) -> None:
        """Flowing words with their colours; a word that is too long for a line is broken."""
        left, right, line = MARGIN, WIDTH - MARGIN, LINE * size / TEXT
        across, top, space = left, self.height, 0.0  # white space waits for the word behind it
        before: int | None = None  # the piece of the word before on this line
        for word in [part for whole in words for part in self.broken(whole, size, right - left)]:
            weight = "bold" if word.heavy or word.style in ("bold", "kept", "alarm") else "normal"
            if "\n" in word.text:
                across, top, space, before = left, top + line, 0.0, None
                continue
            width = self.ruler(f"|{word.text}|", size, weight) - self.ruler("||", size, weight)
            if word.text.isspace():
                space += width if across > left else 0.0
                continue
            if across + space + width > right + 1e-6 and across > left:
                across, top, space, before = left, top + line, 0.0, None
            start, across, space = across + space, across + space + width, 0.0
            if word.colour and before == word.piece:
                self.behind[-1].right = across
            elif word.colour:
                self.behind.append(Box(word.colour, start, across, top + 0.09 * line, 0.86 * line, word.line))
            before = word.piece
            self.word(word, start, top, across, size, weight)
        self.height = top + line

    def broken(self, word: Word, size: float, room: float) -> Iterator[Word]:
        """A word in parts: at its spaces, and where it is wider than a line."""
        for part in spaced(word.text):
            # measured as far as a line may go, or a long word would be measured again and again to its end
            while len(part) > 1 and (width := self.ruler(part[:FARTHEST], size, "bold")) > room:
                fits = max(1, int(min(len(part), FARTHEST) * room / width) - 1)
                yield replace(word, text=part[:fits])
                part = part[fits:]
            yield replace(word, text=part)

    def word(self, word: Word, start: float, top: float, end: float, size: float, weight: str) -> None:
        line = LINE * size / TEXT
        colour = {"quiet": QUIET, "given": HATCH, "alarm": ALARM}.get(word.style, INK)
        if word.colour:
            colour = scale.hexadecimal(scale.ink(word.colour))
        if word.style == "given":
            under = top + line * 0.88
            self.marks.append(("line", ([start, end], [under, under]), {"color": HATCH, "lw": 1.2}))
        look = {"fontsize": size, "fontweight": weight, "color": colour, "va": "baseline", "zorder": 2}
        self.marks.append(("text", (start, top + line * 0.7, word.text), look))

    def path(self, steps: Sequence[Step | int]) -> None:
        """The path of the search as a table with bars."""
        line, size = 0.22, 9.5
        change, number, figure, bar, tick = MARGIN, 3.35, 4.35, 4.5, 7.05
        long = 2.45  # inches of the longest bar

        def put(text: str, across: float, top: float, align: str = "left", colour: str = INK) -> None:
            look = {"fontsize": size, "ha": align, "va": "baseline", "color": colour}
            self.marks.append(("text", (across, top + line * 0.7, text), look))

        for title, across, align in (
            ("change", change, "left"),
            ("size", number, "right"),
            (measure(self.explanation), figure, "right"),
        ):
            put(title, across, self.height, align, QUIET)
        for step in steps:
            self.height += line
            top = self.height
            if isinstance(step, int):
                put(f"⋮ {plural(step, 'step')} more", change, top, colour=QUIET)
                continue
            whole = step.number is None
            said = step.change()
            while self.ruler(said, size) > number - change - 0.5 and len(said) > 2:
                said = said[:-2].rstrip() + "…"
            put(said, change, top, colour=QUIET if whole else INK)
            put(str(step.size), number, top, "right", QUIET if whole else INK)
            put(step.figure, figure, top, "right", QUIET if whole else INK)
            if step.weight is not None:
                place = ((bar, top + line * 0.22), max(0.01, long * step.weight), line * 0.56)
                self.marks.append(("bar", place, {"facecolor": FAINT if whole else KEPT, "edgecolor": "none"}))
            if step.enough:
                put("✓", tick, top, colour=QUIET if whole else INK)
        self.height += line


def spaced(text: str) -> Iterator[str]:
    """Runs of white space and runs of anything else; line breaks alone, and Han and kana one by one."""
    start = 0
    for end in range(1, len(text) + 1):
        last, following = text[end - 1], text[end : end + 1]
        if last == "\n" or following in ("", "\n") or last.isspace() != following.isspace() or following > "\u2e7f":
            yield text[start:end]
            start = end
