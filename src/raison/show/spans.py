"""The text as it was written, cut into pieces: which characters belong to which units.

Nothing is lost and nothing added: the pieces of a passage joined together are the original text, but for
special tokens and the outcome behind the text, which have pieces of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from raison.core.errors import InputError
from raison.core.records import Encoding, Explanation, Span

__all__ = [
    "Passage",
    "Piece",
    "flow",
    "given",
    "golden",
    "grounded",
    "selected",
    "selection",
    "shortened",
]

AROUND = 100  # characters shown on each side of a long stretch without anything selected


@dataclass(frozen=True)
class Piece:
    """Characters that look alike."""

    text: str
    units: tuple[
        int, ...
    ] = ()  # more than one where tokens share a character, e.g. the bytes of an emoji
    kind: str = "plain"  # plain | given | special | target | outcome | unseen | unread
    gold: bool = False  # people marked it


@dataclass(frozen=True)
class Passage:
    """One text of the example under its name."""

    name: str
    pieces: tuple[Piece, ...]


def flow(explanation: Explanation, gold: Sequence[Span] = ()) -> list[Passage]:
    """The passages of an explanation; a continuation goes on where the text before it ends.

    What people marked (`gold`) has pieces of its own, be it a part of a unit.
    """
    encoding, target = explanation.encoding, explanation.target
    marked = golden(encoding, gold)
    passages: list[Passage] = []
    for index, name in enumerate(encoding.segments):
        pieces = tuple(cut(explanation, index, marked[index]))
        if name == "continuation" and passages:
            passages[-1] = Passage(passages[-1].name, passages[-1].pieces + pieces)
        elif pieces:
            passages.append(Passage(name, pieces))
    if (
        target.generated and target.positions[0] >= len(encoding) and passages
    ):  # it is not written yet
        passages[-1] = Passage(
            passages[-1].name, (*passages[-1].pieces, Piece(target.text, kind="outcome"))
        )
    return passages


def grounded(explanation: Explanation, gold: Sequence[Span] = ()) -> list[Passage]:
    """The passages that an answer was looked for in, each a part of the first text, without the prompt around them."""
    if explanation.grounding is None:
        return []
    marked = golden(explanation.encoding, gold)[0]
    passages = []
    for passage in explanation.grounding.passages:
        pieces = cut(explanation, 0, marked, low=passage.start, high=passage.end)
        passages.append(Passage(passage.name, tuple(pieces)))
    return passages


def golden(encoding: Encoding, gold: Sequence[Span]) -> list[np.ndarray]:
    """For each segment [character] whether a span covers it; white space around words is nobody's."""
    marked = [np.zeros(len(text), bool) for text in encoding.texts]
    for span in gold:
        if span.segment and span.segment not in encoding.segments:
            raise InputError(
                f"Gold words are marked in {span.segment!r}, but the texts are {', '.join(encoding.segments)}: "
                "name one of these."
            )
        index = encoding.segments.index(span.segment) if span.segment else 0
        text = encoding.texts[index]
        if span.end > len(text):
            raise InputError(
                f"The gold words at {span.start}..{span.end} end behind the text, which has {len(text)} characters: "
                "give spans of this text."
            )
        inside = text[span.start : span.end]
        start = span.start + len(inside) - len(inside.lstrip())
        marked[index][start : start + len(inside.strip())] = True
    return marked


def given(explanation: Explanation) -> np.ndarray:
    """[t] what this target can't do without and is no unit, such as the last token before a prediction.

    A prompt template and special tokens are there for every target and not counted.
    """
    encoding, target = explanation.encoding, explanation.target
    tokens: np.ndarray = (
        target.given(encoding) & explanation.scope & ~encoding.fixed & (explanation.units.of < 0)
    )
    return tokens


def selected(piece: Piece, explanation: Explanation) -> bool:
    """Whether a piece belongs to the rationale."""
    return explanation.selected is not None and any(
        explanation.selected[unit] for unit in piece.units
    )


def selection(explanation: Explanation) -> bool:
    """Whether an explanation is a selection that nothing was proved about, such as a rationalizer's own.

    Its scores are no evidence for or against the target: none is negative, and all outside of the selection are 0. They
    say how sure the selection was, if anything. So units are shown as selected or not, without sign or number.
    page/wording.js holds the same rule.
    """
    if explanation.selected is None or explanation.certificate is not None:
        return False
    return (
        bool((explanation.scores >= 0).all())
        and not explanation.scores[~explanation.selected].any()
    )


def shortened(
    pieces: Sequence[Piece], explanation: Explanation, tail: bool, dots: str = "… "
) -> list[Piece]:
    """The pieces without the middle of long stretches in which nothing is selected or gold.

    Where no `tail` is wanted, all behind the start of such a stretch is left out.
    """
    found: list[Piece] = []
    for matters, group in groupby(pieces, lambda piece: piece.gold or selected(piece, explanation)):
        stretch = list(group)
        text = "".join(piece.text for piece in stretch)
        if matters or len(text) <= 2 * AROUND + 40:
            found += stretch
            continue
        first = text[:AROUND].rpartition(" ")[0] or text[:AROUND]
        last = ""
        if tail:
            last = text[-AROUND:].partition(" ")[2] or text[-AROUND:]
        found.append(Piece(first + dots + last))
    return found


# -- from characters to pieces -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spot:
    """Characters of one unit, or of several that share them; a special token has none."""

    start: int
    end: int
    units: tuple[int, ...]

    @property
    def is_special(self) -> bool:
        return self.start == self.end

    def is_outside(self, low: int, high: int) -> bool:
        """Whether none of its characters is one of low..high."""
        if self.end < low or self.start > high:
            return True
        return not self.is_special and (self.end == low or self.start == high)


def cut(
    explanation: Explanation, index: int, gold: np.ndarray, *, low: int = 0, high: int | None = None
) -> Iterator[Piece]:
    """The pieces of one segment in reading order, or of the characters low..high of it.

    `gold` says for each character whether people marked it.
    """
    text, kinds, cursor = explanation.encoding.texts[index], kinds_of(explanation, index), low
    high = len(text) if high is None else min(high, len(text))
    for spot in spots(explanation, index):
        if spot.is_outside(low, high):
            continue
        start, end = max(spot.start, low), min(spot.end, high)
        yield from pieces_between_units(text, kinds, gold, cursor, start)
        cursor = max(cursor, end)
        if spot.is_special:
            yield Piece(explanation.units.names[spot.units[0]], spot.units, "special")
            continue
        kind = next((kind for kind in kinds[start:end] if kind in ("target", "outcome")), "plain")
        is_blank = text[start:end].isspace()
        for marked, places in groupby(range(start, end), lambda place: bool(gold[place])):
            shown = "".join(text[place] for place in places)
            if is_blank:
                shown = shown.replace("\n", "⏎\n")  # a line break that has a score must be seen
            yield Piece(shown, spot.units, kind, marked)
    yield from pieces_between_units(text, kinds, gold, cursor, high)


def pieces_between_units(
    text: str, kinds: Sequence[str], gold: np.ndarray, start: int, end: int
) -> Iterator[Piece]:
    """The pieces of characters that belong to no unit."""
    for (kind, marked), places in groupby(
        range(start, end), lambda place: (kinds[place], bool(gold[place]))
    ):
        yield Piece("".join(text[place] for place in places), (), kind, marked)


def kinds_of(explanation: Explanation, index: int) -> list[str]:
    """For each character of a segment: read or not, seen or not, or part of the target itself."""
    encoding, target = explanation.encoding, explanation.target
    here = np.flatnonzero((encoding.segment == index) & (encoding.start >= 0))
    kinds = ["unread" if encoding.truncated else "plain"] * len(encoding.texts[index])

    def mark(tokens: np.ndarray, kind: str) -> None:
        if len(tokens):
            low, high = int(encoding.start[tokens].min()), int(encoding.end[tokens].max())
            kinds[low:high] = [kind] * (high - low)

    mark(here, "plain")
    if explanation.certificate is not None:  # what is kept besides the rationale
        for token in here[given(explanation)[here]]:
            for place in range(encoding.start[token], encoding.end[token]):
                kinds[place] = "plain" if encoding.texts[index][place].isspace() else "given"
    if target.positions:
        first, last = min(target.positions), max(target.positions)
        if target.generated:
            mark(here[here > last], "unseen")
        mark(here[(here >= first) & (here <= last)], outcome(explanation, index))
    return kinds


def outcome(explanation: Explanation, index: int) -> str:
    """A target that stands in the text is marked there; one that was written behind it is the outcome."""
    return "outcome" if explanation.encoding.segments[index] == "continuation" else "target"


def spots(explanation: Explanation, index: int) -> list[Spot]:
    """Where the units of a segment stand, in reading order; units that share characters share a spot."""
    places = []  # start, first token, end, unit: in reading order when they are sorted
    for unit, (segment, start, end) in enumerate(explanation.units.spans):
        if segment != index:
            continue
        token = int(np.flatnonzero(explanation.units.of == unit)[0])
        if start < 0:
            start = end = end_of_text_before(explanation.encoding, index, token)
        places.append((start, token, end, unit))

    spots: list[Spot] = []
    for start, _, end, unit in sorted(places, key=lambda place: place[:2]):
        if spots and end > start and start < spots[-1].end:
            last = spots[-1]
            spots[-1] = Spot(last.start, max(end, last.end), (*last.units, unit))
        else:
            spots.append(Spot(start, end, (unit,)))
    return spots


def end_of_text_before(encoding: Encoding, index: int, token: int) -> int:
    """Where a special token stands: behind the characters of the tokens before it."""
    before = np.flatnonzero((encoding.segment[:token] == index) & (encoding.start[:token] >= 0))
    return int(encoding.end[before].max()) if len(before) else 0
