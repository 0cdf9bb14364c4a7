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
    "TextPassage",
    "TextPiece",
    "answer_passages",
    "given_tokens",
    "gold_characters",
    "is_selected_piece",
    "is_unproved_selection",
    "shorten_pieces",
    "strongest_weight_of_piece",
    "text_passages",
]

AROUND = 100  # characters shown on each side of a long stretch without anything selected


@dataclass(frozen=True)
class TextPiece:
    """Characters that look alike."""

    text: str
    units: tuple[
        int, ...
    ] = ()  # more than one where tokens share a character, e.g. the bytes of an emoji
    kind: str = "plain"  # plain | given | special | target | outcome | unseen | unread
    gold: bool = False  # people marked it


@dataclass(frozen=True)
class TextPassage:
    """One text of the example under its name."""

    name: str
    pieces: tuple[TextPiece, ...]


def text_passages(explanation: Explanation, gold: Sequence[Span] = ()) -> list[TextPassage]:
    """The passages of an explanation; a continuation goes on where the text before it ends.

    What people marked (`gold`) has pieces of its own, be it a part of a unit.
    """
    encoding, target = explanation.encoding, explanation.target
    marked = gold_characters(encoding, gold)
    passages: list[TextPassage] = []
    for index, name in enumerate(encoding.segments):
        pieces = tuple(cut_segment_into_pieces(explanation, index, marked[index]))
        if name == "continuation" and passages:
            passages[-1] = TextPassage(passages[-1].name, passages[-1].pieces + pieces)
        elif pieces:
            passages.append(TextPassage(name, pieces))
    if (
        target.generated and target.positions[0] >= len(encoding) and passages
    ):  # it is not written yet
        passages[-1] = TextPassage(
            passages[-1].name, (*passages[-1].pieces, TextPiece(target.text, kind="outcome"))
        )
    return passages


def answer_passages(explanation: Explanation, gold: Sequence[Span] = ()) -> list[TextPassage]:
    """The passages that an answer was looked for in, each a part of the first text, without the prompt around them."""
    if explanation.grounding is None:
        return []
    marked = gold_characters(explanation.encoding, gold)[0]
    passages = []
    for passage in explanation.grounding.passages:
        pieces = cut_segment_into_pieces(
            explanation, 0, marked, low=passage.start, high=passage.end
        )
        passages.append(TextPassage(passage.name, tuple(pieces)))
    return passages


def gold_characters(encoding: Encoding, gold: Sequence[Span]) -> list[np.ndarray]:
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


def given_tokens(explanation: Explanation) -> np.ndarray:
    """[t] what this target can't do without and is no unit, such as the last token before a prediction.

    A prompt template and special tokens are there for every target and not counted.
    """
    encoding, target = explanation.encoding, explanation.target
    tokens: np.ndarray = (
        target.given(encoding) & explanation.scope & ~encoding.fixed & (explanation.units.of < 0)
    )
    return tokens


def is_selected_piece(piece: TextPiece, explanation: Explanation) -> bool:
    """Whether a piece belongs to the rationale."""
    return explanation.selected is not None and any(
        explanation.selected[unit] for unit in piece.units
    )


def is_unproved_selection(explanation: Explanation) -> bool:
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


def shorten_pieces(
    pieces: Sequence[TextPiece], explanation: Explanation, tail: bool, dots: str = "… "
) -> list[TextPiece]:
    """The pieces without the middle of long stretches in which nothing is selected or gold.

    Where no `tail` is wanted, all behind the start of such a stretch is left out.
    """
    found: list[TextPiece] = []
    for matters, group in groupby(
        pieces, lambda piece: piece.gold or is_selected_piece(piece, explanation)
    ):
        stretch = list(group)
        text = "".join(piece.text for piece in stretch)
        if matters or len(text) <= 2 * AROUND + 40:
            found += stretch
            continue
        first = text[:AROUND].rpartition(" ")[0] or text[:AROUND]
        last = ""
        if tail:
            last = text[-AROUND:].partition(" ")[2] or text[-AROUND:]
        found.append(TextPiece(first + dots + last))
    return found


# -- from characters to pieces -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UnitSpot:
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


def cut_segment_into_pieces(
    explanation: Explanation, index: int, gold: np.ndarray, *, low: int = 0, high: int | None = None
) -> Iterator[TextPiece]:
    """The pieces of one segment in reading order, or of the characters low..high of it.

    `gold` says for each character whether people marked it.
    """
    text, kinds, cursor = (
        explanation.encoding.texts[index],
        character_kinds_of_segment(explanation, index),
        low,
    )
    high = len(text) if high is None else min(high, len(text))
    for spot in unit_spots_of_segment(explanation, index):
        if spot.is_outside(low, high):
            continue
        start, end = max(spot.start, low), min(spot.end, high)
        yield from pieces_between_units(text, kinds, gold, cursor, start)
        cursor = max(cursor, end)
        if spot.is_special:
            yield TextPiece(explanation.units.names[spot.units[0]], spot.units, "special")
            continue
        kind = next((kind for kind in kinds[start:end] if kind in ("target", "outcome")), "plain")
        is_blank = text[start:end].isspace()
        for marked, places in groupby(range(start, end), lambda place: bool(gold[place])):
            shown = "".join(text[place] for place in places)
            if is_blank:
                shown = shown.replace("\n", "⏎\n")  # a line break that has a score must be seen
            yield TextPiece(shown, spot.units, kind, marked)
    yield from pieces_between_units(text, kinds, gold, cursor, high)


def pieces_between_units(
    text: str, kinds: Sequence[str], gold: np.ndarray, start: int, end: int
) -> Iterator[TextPiece]:
    """The pieces of characters that belong to no unit."""
    for (kind, marked), places in groupby(
        range(start, end), lambda place: (kinds[place], bool(gold[place]))
    ):
        yield TextPiece("".join(text[place] for place in places), (), kind, marked)


def character_kinds_of_segment(explanation: Explanation, index: int) -> list[str]:
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
        for token in here[given_tokens(explanation)[here]]:
            for place in range(encoding.start[token], encoding.end[token]):
                kinds[place] = "plain" if encoding.texts[index][place].isspace() else "given"
    if target.positions:
        first, last = min(target.positions), max(target.positions)
        if target.generated:
            mark(here[here > last], "unseen")
        mark(here[(here >= first) & (here <= last)], kind_of_target_piece(explanation, index))
    return kinds


def kind_of_target_piece(explanation: Explanation, index: int) -> str:
    """A target that stands in the text is marked there; one that was written behind it is the outcome."""
    return "outcome" if explanation.encoding.segments[index] == "continuation" else "target"


def unit_spots_of_segment(explanation: Explanation, index: int) -> list[UnitSpot]:
    """Where the units of a segment stand, in reading order; units that share characters share a spot."""
    places = []  # start, first token, end, unit: in reading order when they are sorted
    for unit, (segment, start, end) in enumerate(explanation.units.spans):
        if segment != index:
            continue
        token = int(np.flatnonzero(explanation.units.of == unit)[0])
        if start < 0:
            start = end = end_of_text_before(explanation.encoding, index, token)
        places.append((start, token, end, unit))

    spots: list[UnitSpot] = []
    for start, _, end, unit in sorted(places, key=lambda place: place[:2]):
        if spots and end > start and start < spots[-1].end:
            last = spots[-1]
            spots[-1] = UnitSpot(last.start, max(end, last.end), (*last.units, unit))
        else:
            spots.append(UnitSpot(start, end, (unit,)))
    return spots


def end_of_text_before(encoding: Encoding, index: int, token: int) -> int:
    """Where a special token stands: behind the characters of the tokens before it."""
    before = np.flatnonzero((encoding.segment[:token] == index) & (encoding.start[:token] >= 0))
    return int(encoding.end[before].max()) if len(before) else 0


def strongest_weight_of_piece(piece: TextPiece, weights: np.ndarray) -> float:
    """The strongest weight of the units that share a piece."""
    return max((float(weights[unit]) for unit in piece.units), key=abs)
