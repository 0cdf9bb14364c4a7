"""The text of an explanation, cut into pieces: which characters belong to which units, are given, or marked as gold.

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
    # more than one where tokens share a character, e.g. the bytes of an emoji
    units: tuple[int, ...] = ()
    kind: str = "plain"  # plain | given | special | target | outcome | unseen | unread
    gold: bool = False  # people marked it


@dataclass(frozen=True)
class TextPassage:
    """One text of the example under its name."""

    name: str
    pieces: tuple[TextPiece, ...]

    def followed_by(self, *pieces: TextPiece) -> TextPassage:
        """The same passage with more pieces at its end."""
        return TextPassage(self.name, (*self.pieces, *pieces))


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
            passages[-1] = passages[-1].followed_by(*pieces)
        elif pieces:
            passages.append(TextPassage(name, pieces))

    is_not_written_yet = target.generated and target.positions[0] >= len(encoding)
    if is_not_written_yet and passages:
        outcome = TextPiece(target.text, kind="outcome")
        passages[-1] = passages[-1].followed_by(outcome)
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
        index = 0
        if span.segment:
            index = encoding.segments.index(span.segment)
        text = encoding.texts[index]
        if span.end > len(text):
            raise InputError(
                f"The gold words at {span.start}..{span.end} end behind the text, which has {len(text)} characters: "
                "give spans of this text."
            )
        inside = text[span.start : span.end]
        blanks_before = len(inside) - len(inside.lstrip())
        start = span.start + blanks_before
        end = start + len(inside.strip())
        marked[index][start:end] = True
    return marked


def given_tokens(explanation: Explanation) -> np.ndarray:
    """[t] what this target can't do without and is no unit, such as the last token before a prediction.

    A prompt template and special tokens are there for every target and not counted.
    """
    encoding = explanation.encoding
    given = explanation.target.given(encoding) & explanation.scope
    of_no_unit = explanation.units.of < 0
    tokens: np.ndarray = given & ~encoding.fixed & of_no_unit
    return tokens


def is_selected_piece(piece: TextPiece, explanation: Explanation) -> bool:
    """Whether a piece belongs to the rationale."""
    if explanation.selected is None:
        return False
    return any(explanation.selected[unit] for unit in piece.units)


def is_unproved_selection(explanation: Explanation) -> bool:
    """Whether an explanation is a selection that nothing was proved about, such as a rationalizer's own.

    Its scores are no evidence for or against the target: none is negative, and all outside of the selection are 0. They
    say how sure the selection was, if anything. So units are shown as selected or not, without sign or number.
    page/wording.js holds the same rule.
    """
    if explanation.selected is None or explanation.certificate is not None:
        return False
    if (explanation.scores < 0).any():
        return False
    outside = explanation.scores[~explanation.selected]
    return not outside.any()


def strongest_weight_of_piece(piece: TextPiece, weights: np.ndarray) -> float:
    """The weight of the strongest of the units that share a piece."""
    of_units = [float(weights[unit]) for unit in piece.units]
    return max(of_units, key=abs)


def shorten_pieces(
    pieces: Sequence[TextPiece], explanation: Explanation, tail: bool, dots: str = "… "
) -> list[TextPiece]:
    """The pieces without the middle of long stretches in which nothing is selected or gold.

    Where no `tail` is wanted, all behind the start of such a stretch is left out.
    """

    def matters(piece: TextPiece) -> bool:
        return piece.gold or is_selected_piece(piece, explanation)

    kept: list[TextPiece] = []
    for must_stay, group in groupby(pieces, matters):
        stretch = list(group)
        text = "".join(piece.text for piece in stretch)
        if must_stay or len(text) <= 2 * AROUND + 40:
            kept += stretch
            continue
        beginning = text[:AROUND]
        first = beginning.rpartition(" ")[0] or beginning
        last = ""
        if tail:
            end = text[-AROUND:]
            last = end.partition(" ")[2] or end
        kept.append(TextPiece(first + dots + last))
    return kept


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
        if self.is_special:
            return False
        return self.end == low or self.start == high


def cut_segment_into_pieces(
    explanation: Explanation, index: int, gold: np.ndarray, *, low: int = 0, high: int | None = None
) -> Iterator[TextPiece]:
    """The pieces of one segment in reading order, or of the characters low..high of it.

    `gold` says for each character whether people marked it.
    """
    text = explanation.encoding.texts[index]
    kinds = character_kinds_of_segment(explanation, index)
    if high is None or high > len(text):
        high = len(text)

    cursor = low
    for spot in unit_spots_of_segment(explanation, index):
        if spot.is_outside(low, high):
            continue
        start, end = max(spot.start, low), min(spot.end, high)
        yield from pieces_between_units(text, kinds, gold, cursor, start)
        cursor = max(cursor, end)
        if spot.is_special:
            name = explanation.units.names[spot.units[0]]
            yield TextPiece(name, spot.units, "special")
        else:
            yield from pieces_of_units(text, kinds, gold, start, end, spot.units)
    yield from pieces_between_units(text, kinds, gold, cursor, high)


def pieces_of_units(
    text: str,
    kinds: Sequence[str],
    gold: np.ndarray,
    start: int,
    end: int,
    units: tuple[int, ...],
) -> Iterator[TextPiece]:
    """The pieces of the characters that belong to some units: one, or more where people marked only a part."""
    kind = "plain"
    for each in kinds[start:end]:
        if each in ("target", "outcome"):
            kind = each
            break
    is_blank = text[start:end].isspace()
    for marked, places in groupby(range(start, end), lambda place: bool(gold[place])):
        shown = "".join(text[place] for place in places)
        if is_blank:
            shown = shown.replace("\n", "⏎\n")  # a line break that has a score must be seen
        yield TextPiece(shown, units, kind, marked)


def pieces_between_units(
    text: str, kinds: Sequence[str], gold: np.ndarray, start: int, end: int
) -> Iterator[TextPiece]:
    """The pieces of characters that belong to no unit."""

    def look_of(place: int) -> tuple[str, bool]:
        return kinds[place], bool(gold[place])

    for (kind, marked), places in groupby(range(start, end), look_of):
        shown = "".join(text[place] for place in places)
        yield TextPiece(shown, (), kind, marked)


def character_kinds_of_segment(explanation: Explanation, index: int) -> list[str]:
    """For each character of a segment: read or not, seen or not, or part of the target itself."""
    encoding, target = explanation.encoding, explanation.target
    text = encoding.texts[index]
    in_segment = (encoding.segment == index) & (encoding.start >= 0)
    here = np.flatnonzero(in_segment)
    kinds = ["plain"] * len(text)
    if encoding.truncated:
        kinds = ["unread"] * len(text)

    def mark(tokens: np.ndarray, kind: str) -> None:
        if not len(tokens):
            return
        low = int(encoding.start[tokens].min())
        high = int(encoding.end[tokens].max())
        kinds[low:high] = [kind] * (high - low)

    mark(here, "plain")
    if explanation.certificate is not None:  # what is kept besides the rationale
        is_given = given_tokens(explanation)
        for token in here[is_given[here]]:
            start, end = encoding.start[token], encoding.end[token]
            for place in range(start, end):
                kinds[place] = "plain" if text[place].isspace() else "given"
    if target.positions:
        first, last = min(target.positions), max(target.positions)
        if target.generated:
            mark(here[here > last], "unseen")
        of_target = (here >= first) & (here <= last)
        mark(here[of_target], kind_of_target_piece(explanation, index))
    return kinds


def kind_of_target_piece(explanation: Explanation, index: int) -> str:
    """A target that stands in the text is marked there; one that was written behind it is the outcome."""
    if explanation.encoding.segments[index] == "continuation":
        return "outcome"
    return "target"


def unit_spots_of_segment(explanation: Explanation, index: int) -> list[UnitSpot]:
    """Where the units of a segment stand, in reading order; units that share characters share a spot."""
    places = []  # start, first token, end, unit: in reading order when they are sorted
    for unit, (segment, start, end) in enumerate(explanation.units.spans):
        if segment != index:
            continue
        tokens = np.flatnonzero(explanation.units.of == unit)
        first_token = int(tokens[0])
        if start < 0:
            start = end = end_of_text_before(explanation.encoding, index, first_token)
        places.append((start, first_token, end, unit))
    places.sort(key=lambda place: place[:2])

    spots: list[UnitSpot] = []
    for start, _, end, unit in places:
        shares_characters = bool(spots) and start < end and start < spots[-1].end
        if shares_characters:
            last = spots[-1]
            spots[-1] = UnitSpot(last.start, max(end, last.end), (*last.units, unit))
        else:
            spots.append(UnitSpot(start, end, (unit,)))
    return spots


def end_of_text_before(encoding: Encoding, index: int, token: int) -> int:
    """Where a special token stands: behind the characters of the tokens before it."""
    in_segment = encoding.segment[:token] == index
    has_characters = encoding.start[:token] >= 0
    before = np.flatnonzero(in_segment & has_characters)
    if not len(before):
        return 0
    return int(encoding.end[before].max())
