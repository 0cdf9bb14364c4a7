"""Character spans of tokens and marks in a text: found, joined, and checked against what they should hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from raison.core.errors import InputError
from raison.core.records import Span

__all__ = [
    "Places",
    "checked_span",
    "find_tokens",
    "join_words",
    "quote_short",
    "runs_of_true_marks",
    "spans_of_marks",
]

Places = list[tuple[int, int]]  # first character and one past the last, of each word or token


def find_tokens(text: str) -> Places:
    """Characters of each token between white space."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def join_words(words: Sequence[str], glue: str = " ") -> tuple[str, Places]:
    """The words as one text, and the characters of each."""
    places: Places = []
    cursor = 0
    for word in words:
        end = cursor + len(word)
        places.append((cursor, end))
        cursor = end + len(glue)
    return glue.join(words), places


def runs_of_true_marks(marks: Iterable[bool]) -> Places:
    """First and one past the last index of each run of True."""
    runs: Places = []
    start: int | None = None
    size = 0

    for index, mark in enumerate(marks):
        size = index + 1
        if mark and start is None:
            start = index
        elif not mark and start is not None:
            runs.append((start, index))
            start = None

    if start is not None:
        runs.append((start, size))
    return runs


def spans_of_marks(places: Places, marks: Sequence[bool | int], segment: str) -> tuple[Span, ...]:
    """Spans of a 0/1 list over tokens; neighbours make one span."""
    if len(marks) != len(places):
        raise InputError(f"{len(marks)} marks do not fit {len(places)} tokens.")
    if any(mark not in (0, 1) for mark in marks):
        raise InputError("the marks of a rationale are 0 and 1.")

    spans = []
    runs = runs_of_true_marks(map(bool, marks))
    for first, behind in runs:
        start, _ = places[first]
        _, end = places[behind - 1]
        spans.append(Span(start, end, segment))
    return tuple(spans)


def checked_span(
    text: str,
    start: object,
    end: object,
    *,
    segment: str,
    stated: object = None,
) -> Span:
    """A span of `text`, which must hold what it is said to hold (None: nothing is said)."""
    first = end_of_span(start)
    behind = end_of_span(end)
    span = f"the span {start}..{end}"
    if not 0 <= first < behind <= len(text):
        raise InputError(f"{span} is not in the text, which has {len(text)} characters.")

    held = text[first:behind]
    if stated is not None and held != stated:
        words = f"{quote_short(held)}, not {quote_short(str(stated))}"
        raise InputError(f"{span} holds {words} as stated.")
    return Span(first, behind, segment)


def end_of_span(value: object) -> int:
    """An end of a span, which must be a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"a span has two whole numbers, not {value!r}.")
    return value


def quote_short(text: str) -> str:
    """A text as it is named in a sentence."""
    if len(text) > 40:
        text = f"{text[:37]}..."
    return repr(text)
