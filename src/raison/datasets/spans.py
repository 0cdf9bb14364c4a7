"""Where marked words stand: character spans of tokens, and spans checked against what they are said to hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from raison.core.errors import InputError
from raison.core.records import Span

__all__ = ["joined", "marked", "runs", "short", "stated", "tokens"]

Places = list[tuple[int, int]]


def tokens(text: str) -> Places:
    """Characters of each token between white space."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def joined(words: Sequence[str], glue: str = " ") -> tuple[str, Places]:
    """The words as one text, and the characters of each."""
    places: Places = []
    cursor = 0
    for word in words:
        places.append((cursor, cursor + len(word)))
        cursor += len(word) + len(glue)
    return glue.join(words), places


def runs(chosen: Iterable[bool]) -> Places:
    """First and one past the last index of each run of True."""
    found: Places = []
    for index, inside in enumerate(chosen):
        if not inside:
            continue
        if found and found[-1][1] == index:
            found[-1] = (found[-1][0], index + 1)
        else:
            found.append((index, index + 1))
    return found


def marked(places: Places, chosen: Sequence[bool | int], segment: str) -> tuple[Span, ...]:
    """Spans of a 0/1 list over tokens; neighbours make one span."""
    if len(chosen) != len(places):
        raise InputError(f"{len(chosen)} marks do not fit {len(places)} tokens.")
    if any(mark not in (0, 1) for mark in chosen):
        raise InputError("the marks of a rationale are 0 and 1.")
    return tuple(Span(places[a][0], places[b - 1][1], segment) for a, b in runs(bool(mark) for mark in chosen))


def stated(text: str, start: int, end: int, said: str | None, segment: str) -> Span:
    """A span of `text` that holds what it is said to hold (None: nothing is said)."""
    for number in (start, end):
        if isinstance(number, bool) or not isinstance(number, int):
            raise InputError(f"a span has two whole numbers, not {number!r}.")
    if not 0 <= start < end <= len(text):
        raise InputError(f"the span {start}..{end} is not in the text, which has {len(text)} characters.")
    if said is not None and text[start:end] != said:
        raise InputError(f"the span {start}..{end} holds {short(text[start:end])}, not {short(said)} as stated.")
    return Span(start, end, segment)


def short(text: str) -> str:
    """A text as it is named in a sentence."""
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
