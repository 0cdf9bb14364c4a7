"""Placement of marks on a text: the place of a list of numbers, of a span of characters or tokens, or of words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeGuard

from raison.core.errors import InputError
from raison.core.records import Span
from raison.datasets.annotations import TokenizedText, WrittenSpan
from raison.datasets.character_spans import (
    Places,
    checked_span,
    quote_short,
    runs_of_true_marks,
    spans_of_marks,
)

__all__ = [
    "fitting_mark_span",
    "has_repeated_mark_numbers",
    "mark_numbers_fit",
    "place_span",
    "runs_of_mark_numbers",
    "spans_of_numbers",
    "spans_of_runs",
    "spans_of_words",
]


def spans_of_numbers(
    text: TokenizedText,
    numbers: Sequence[int],
    *,
    unit: str,
    segment: str = "",
) -> tuple[Span, ...]:
    """Spans of a list of numbers: 0 and 1 for each token, or the numbers of what is marked, counted from 0."""
    if unit == "flags":
        return spans_of_marks(text.tokens, numbers, segment)
    if has_repeated_mark_numbers(numbers):
        raise InputError(f"the numbers of {unit} name one twice.")

    if unit == "tokens":
        check_mark_numbers(numbers, len(text.tokens), thing="token")
        inside = set(numbers)
        marks = [index in inside for index in range(len(text.tokens))]
        return spans_of_marks(text.tokens, marks, segment)

    check_mark_numbers(numbers, len(text.text), thing="character")
    runs = runs_of_mark_numbers(numbers)
    return tuple(spans_of_runs(text.text, runs, segment))


def check_mark_numbers(numbers: Sequence[int], size: int, *, thing: str) -> None:
    """Refuse numbers of things of which there are only `size`."""
    least = min(numbers)
    most = max(numbers)
    if least < 0 or most >= size:
        wrong = least if least < 0 else most
        raise InputError(f"there is no {thing} {wrong} in a text of {size}, counted from 0.")


def spans_of_runs(text: str, runs: Places, segment: str) -> list[Span]:
    """Spans of runs of characters, without those of white space only."""
    return [Span(start, end, segment) for start, end in runs if text[start:end].strip()]


def has_repeated_mark_numbers(numbers: Sequence[int]) -> bool:
    """Whether a number stands there twice."""
    return len(set(numbers)) < len(numbers)


def mark_numbers_fit(numbers: Sequence[int], size: int) -> bool:
    """Whether numbers can count things of which there are `size`."""
    return not has_repeated_mark_numbers(numbers) and min(numbers) >= 0 and max(numbers) < size


def runs_of_mark_numbers(numbers: Sequence[int]) -> Places:
    """The runs of neighbours: first number and one past the last."""
    inside = set(numbers)
    return runs_of_true_marks(number in inside for number in range(max(numbers) + 1))


# -- written spans -----------------------------------------------------------------------------------------------


def place_span(
    text: TokenizedText,
    written: WrittenSpan,
    *,
    unit: str,
    segment: str = "",
) -> Span | None:
    """A written span on the text; None where it does not fit."""
    start, end = written.start, written.end
    if not is_whole_number(start) or not is_whole_number(end):
        return None
    if unit == "characters":
        return place_characters(
            text.text,
            start,
            end,
            stated=written.stated,
            segment=segment,
        )
    return place_tokens(
        text,
        start,
        end,
        stated=written.stated,
        segment=segment,
    )


def place_characters(
    text: str,
    start: int,
    end: int,
    *,
    stated: object,
    segment: str,
) -> Span | None:
    """A span of characters; None where it does not fit."""
    if not 0 <= start < end <= len(text) or stated not in (None, text[start:end]):
        return None
    return Span(start, end, segment)


def place_tokens(
    text: TokenizedText,
    start: int,
    end: int,
    *,
    stated: object,
    segment: str,
) -> Span | None:
    """A span of tokens; None where it does not fit."""
    if not 0 <= start < end <= len(text.tokens):
        return None

    first, _ = text.tokens[start]
    _, behind = text.tokens[end - 1]
    if stated is not None and str(stated).split() != text.text[first:behind].split():
        return None
    return Span(first, behind, segment)


def is_whole_number(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def fitting_mark_span(
    text: TokenizedText,
    written: WrittenSpan,
    *,
    unit: str,
    segment: str,
) -> Span:
    """A written span on the text, where it must fit."""
    span = place_span(text, written, unit=unit, segment=segment)
    if span is not None:
        return span

    start, end = written.start, written.end
    if unit == "tokens" and isinstance(start, int) and isinstance(end, int):
        raise token_span_error(text, start, end, written.stated)
    return checked_span(  # which says what is wrong
        text.text,
        start,
        end,
        stated=written.stated,
        segment=segment,
    )


def token_span_error(
    text: TokenizedText,
    start: int,
    end: int,
    stated: object,
) -> InputError:
    """What is wrong with a span of tokens that does not fit."""
    tokens = f"the tokens {start}..{end}"
    size = len(text.tokens)
    if not 0 <= start < end <= size:
        return InputError(f"{tokens} are not in the text, which has {size}.")

    words = quote_short(str(stated))
    return InputError(f"{tokens} do not hold {words}.")


# -- words -------------------------------------------------------------------------------------------------------


def spans_of_words(text: str, words: Sequence[str], segment: str) -> list[Span]:
    """Where marked words stand: each where it comes next as a whole word, else first in the text; once each."""
    taken: Places = []
    cursor = 0
    for word in words:
        if not word.strip():
            raise InputError("a marked word is empty.")

        place = next_place_of_word(
            text,
            word.strip(),
            cursor=cursor,
            taken=taken,
        )
        if place is None:
            quoted = f"{quote_short(word)} is no span of the text {quote_short(text)}"
            raise InputError(f"the marked word {quoted}: it does not stand there.")
        taken.append(place)
        _, cursor = place
    return [Span(start, end, segment) for start, end in sorted(taken)]


def next_place_of_word(
    text: str,
    word: str,
    *,
    cursor: int,
    taken: Places,
) -> tuple[int, int] | None:
    """Where a word stands that is not taken: behind the cursor, else anywhere; best as a whole word in its own case."""
    exact = re.escape(word)
    whole = rf"(?<!\w){exact}(?!\w)"
    patterns = (
        re.compile(whole),
        re.compile(whole, re.IGNORECASE),
        re.compile(exact),
        re.compile(exact, re.IGNORECASE),
    )

    for pattern in patterns:
        places = [match.span() for match in pattern.finditer(text)]
        free = [place for place in places if not place_overlaps(place, taken)]
        for start, end in free:
            if start >= cursor:
                return start, end
        if free:
            return free[0]
    return None


def place_overlaps(place: tuple[int, int], taken: Places) -> bool:
    """Whether a place shares a character with one that is taken."""
    start, end = place
    return any(first < end and start < behind for first, behind in taken)
