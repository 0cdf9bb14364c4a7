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
    "shorten_text_pieces",
    "strongest_weight_of_piece",
    "text_passages",
]

AROUND = 100  # characters shown on each side of a long stretch without anything selected
LEAST_LEFT_OUT = 40  # characters: for fewer a stretch is not shortened


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
        all_pieces = self.pieces + pieces
        return TextPassage(self.name, all_pieces)


def text_passages(explanation: Explanation, gold: Sequence[Span] = ()) -> list[TextPassage]:
    """The passages of an explanation; a continuation goes on where the text before it ends.

    What people marked (`gold`) has pieces of its own, be it a part of a unit.
    """
    encoding = explanation.encoding
    target = explanation.target
    marked = gold_characters(encoding, gold)
    passages: list[TextPassage] = []
    for index, name in enumerate(encoding.segments):
        cut = cut_segment_into_pieces(explanation, index, marked[index])
        pieces = tuple(cut)
        if name == "continuation" and passages:
            before = passages.pop()
            passages.append(before.followed_by(*pieces))
        elif pieces:
            passages.append(TextPassage(name, pieces))

    is_not_written_yet = target.generated and target.positions[0] >= len(encoding)
    if is_not_written_yet and passages:
        outcome = TextPiece(target.text, kind="outcome")
        before = passages.pop()
        passages.append(before.followed_by(outcome))
    return passages


def answer_passages(explanation: Explanation, gold: Sequence[Span] = ()) -> list[TextPassage]:
    """The passages that an answer was looked for in, each a part of the first text, without the prompt around them."""
    if explanation.grounding is None:
        return []
    marked, *_ = gold_characters(explanation.encoding, gold)
    passages = []
    for passage in explanation.grounding.passages:
        cut = cut_segment_into_pieces(
            explanation, index=0, gold=marked, low=passage.start, high=passage.end
        )
        pieces = tuple(cut)
        passages.append(TextPassage(passage.name, pieces))
    return passages


def gold_characters(encoding: Encoding, gold: Sequence[Span]) -> list[np.ndarray]:
    """For each segment [character] whether a span covers it; white space around words is nobody's."""
    marked = [np.zeros(len(text), bool) for text in encoding.texts]
    for span in gold:
        index = segment_of_gold(encoding, span)
        text = encoding.texts[index]
        size = len(text)
        if span.end > size:
            raise InputError(
                f"The gold words at {span.start}..{span.end} end behind the text, which has {size} characters: "
                "give spans of this text."
            )

        inside = text[span.start : span.end]
        without_blanks_before = inside.lstrip()
        words = inside.strip()
        blanks_before = len(inside) - len(without_blanks_before)
        start = span.start + blanks_before
        end = start + len(words)
        marked_in_segment = marked[index]
        marked_in_segment[start:end] = True
    return marked


def segment_of_gold(encoding: Encoding, span: Span) -> int:
    """The index of the segment that a span names; the first where it names none."""
    segments = encoding.segments
    if not span.segment:
        return 0
    if span.segment not in segments:
        names = ", ".join(segments)
        raise InputError(
            f"Gold words are marked in {span.segment!r}, but the texts are {names}: "
            "name one of these."
        )
    return segments.index(span.segment)


def given_tokens(explanation: Explanation) -> np.ndarray:
    """[t] what this target can't do without and is no unit, such as the last token before a prediction.

    A prompt template and special tokens are there for every target and not counted.
    """
    encoding = explanation.encoding
    given = explanation.target.given(encoding)
    given_in_scope = given & explanation.scope
    of_no_unit = explanation.units.of < 0
    tokens: np.ndarray = given_in_scope & ~encoding.fixed & of_no_unit
    return tokens


def is_selected_piece(piece: TextPiece, explanation: Explanation) -> bool:
    """Whether a piece belongs to the rationale."""
    selected = explanation.selected
    if selected is None:
        return False
    return any(selected[unit] for unit in piece.units)


def is_unproved_selection(explanation: Explanation) -> bool:
    """Whether an explanation is a selection that nothing was proved about, such as a rationalizer's own.

    Its scores are no evidence for or against the target: none is negative, and all outside of the selection are 0. They
    say how sure the selection was, if anything. So units are shown as selected or not, without sign or number.
    page/wording.js holds the same rule.
    """
    selected = explanation.selected
    scores = explanation.scores
    if selected is None or explanation.certificate is not None:
        return False
    is_negative = scores < 0
    if is_negative.any():
        return False
    outside = scores[~selected]
    return not outside.any()


def strongest_weight_of_piece(piece: TextPiece, weights: np.ndarray) -> float:
    """The weight of the strongest of the units that share a piece."""
    of_units = [float(weights[unit]) for unit in piece.units]
    return max(of_units, key=abs)


def shorten_text_pieces(
    pieces: Sequence[TextPiece], explanation: Explanation, tail: bool, dots: str = "… "
) -> list[TextPiece]:
    """The pieces without the middle of long stretches in which nothing is selected or gold.

    Where no `tail` is wanted, all behind the start of such a stretch is left out.
    """

    def matters(piece: TextPiece) -> bool:
        return piece.gold or is_selected_piece(piece, explanation)

    longest = 2 * AROUND + LEAST_LEFT_OUT
    kept: list[TextPiece] = []
    for must_stay, group in groupby(pieces, matters):
        stretch = list(group)
        texts = [piece.text for piece in stretch]
        text = "".join(texts)
        is_short = len(text) <= longest
        if must_stay or is_short:
            kept += stretch
            continue

        beginning = text[:AROUND]
        whole_words, _, _ = beginning.rpartition(" ")
        first = whole_words or beginning
        last = ""
        if tail:
            end = text[-AROUND:]
            _, _, whole_words = end.partition(" ")
            last = whole_words or end
        shortened = TextPiece(first + dots + last)
        kept.append(shortened)
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
        ends_before = self.end < low
        starts_behind = self.start > high
        if ends_before or starts_behind:
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
    spots = unit_spots_of_segment(explanation, index)
    unit_names = explanation.units.names
    size = len(text)
    if high is None or high > size:
        high = size

    cursor = low
    for spot in spots:
        if spot.is_outside(low, high):
            continue
        start = max(spot.start, low)
        end = min(spot.end, high)
        yield from pieces_between_units(text, kinds, gold, cursor, start)
        cursor = max(cursor, end)
        if spot.is_special:
            (unit,) = spot.units
            name = unit_names[unit]
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

    def is_gold(place: int) -> bool:
        return bool(gold[place])

    kind = "plain"
    for each in kinds[start:end]:
        if each in ("target", "outcome"):
            kind = each
            break

    characters = text[start:end]
    is_blank = characters.isspace()
    places_of_unit = range(start, end)
    for marked, places in groupby(places_of_unit, is_gold):
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

    places_between = range(start, end)
    for (kind, marked), places in groupby(places_between, look_of):
        shown = "".join(text[place] for place in places)
        yield TextPiece(shown, (), kind, marked)


def character_kinds_of_segment(explanation: Explanation, index: int) -> list[str]:
    """For each character of a segment: read or not, seen or not, or part of the target itself."""
    encoding = explanation.encoding
    target = explanation.target
    text = encoding.texts[index]
    of_segment = encoding.segment == index
    has_characters = encoding.start >= 0
    here = np.flatnonzero(of_segment & has_characters)
    usual = "plain"
    if encoding.truncated:
        usual = "unread"
    kinds = [usual] * len(text)

    def mark(tokens: np.ndarray, kind: str) -> None:
        if not len(tokens):
            return
        starts = encoding.start[tokens]
        ends = encoding.end[tokens]
        low = int(starts.min())
        high = int(ends.max())
        kinds[low:high] = [kind] * (high - low)

    mark(here, "plain")
    if explanation.certificate is not None:  # what is kept besides the rationale
        is_given = given_tokens(explanation)
        given_here = here[is_given[here]]
        for token in given_here:
            start = encoding.start[token]
            end = encoding.end[token]
            for place in range(start, end):
                is_blank = text[place].isspace()
                kinds[place] = "plain" if is_blank else "given"

    if target.positions:
        first = min(target.positions)
        last = max(target.positions)
        if target.generated:
            later = here[here > last]
            mark(later, "unseen")
        is_of_target = (here >= first) & (here <= last)
        kind_of_target = kind_of_target_piece(explanation, index)
        mark(here[is_of_target], kind_of_target)
    return kinds


def kind_of_target_piece(explanation: Explanation, index: int) -> str:
    """A target that stands in the text is marked there; one that was written behind it is the outcome."""
    segment_name = explanation.encoding.segments[index]
    if segment_name == "continuation":
        return "outcome"
    return "target"


def unit_spots_of_segment(explanation: Explanation, index: int) -> list[UnitSpot]:
    """Where the units of a segment stand, in reading order; units that share characters share a spot."""
    units = explanation.units
    places = []  # start, first token, end, unit: in reading order when they are sorted
    for unit, (segment, start, end) in enumerate(units.spans):
        if segment != index:
            continue
        tokens = np.flatnonzero(units.of == unit)
        first_token = int(tokens[0])
        if start < 0:
            start = end_of_text_before(explanation.encoding, index, first_token)
            end = start
        place = (start, first_token, end, unit)
        places.append(place)
    places.sort(key=lambda place: place[:2])

    spots: list[UnitSpot] = []
    end_of_last = 0
    for start, _, end, unit in places:
        spot = UnitSpot(start, end, (unit,))
        shares_characters = start < end and start < end_of_last
        if shares_characters:
            last = spots.pop()
            all_units = (*last.units, unit)
            spot = UnitSpot(last.start, max(end, last.end), all_units)
        spots.append(spot)
        end_of_last = spot.end
    return spots


def end_of_text_before(encoding: Encoding, index: int, token: int) -> int:
    """Where a special token stands: behind the characters of the tokens before it."""
    in_segment = encoding.segment[:token] == index
    has_characters = encoding.start[:token] >= 0
    before = np.flatnonzero(in_segment & has_characters)
    if not len(before):
        return 0
    ends = encoding.end[before]
    return int(ends.max())
