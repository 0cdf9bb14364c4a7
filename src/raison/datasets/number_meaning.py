"""The meaning of numbers in a column: do they count characters, tokens, or say 0 and 1 for each token?

Numbers alone do not say it, so some records of the column are looked at together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from raison.datasets.annotations import Annotation, NumberMeaning, TokenizedText, WrittenSpan
from raison.datasets.mark_placement import (
    has_repeated_mark_numbers,
    mark_numbers_fit,
    place_span,
    runs_of_mark_numbers,
    spans_of_numbers,
)

__all__ = ["decide_meaning_of_numbers"]

NumberList = tuple[
    TokenizedText, tuple[int, ...]
]  # a text, and the numbers that a person wrote about it


class Decision(NamedTuple):
    """What numbers count."""

    unit: str
    doubtful: bool = False


def decide_meaning_of_numbers(
    samples: Sequence[tuple[TokenizedText, Annotation]], declared: str = ""
) -> NumberMeaning:
    """What the numbers of a column count, from some of its records; `declared` is what the user says."""
    if declared:
        return NumberMeaning(declared, "tokens" if declared == "tokens" else "characters")

    lists = []
    spans = []
    for text, annotation in samples:
        if annotation.numbers:
            lists.append((text, annotation.numbers))
        spans += [(text, span) for span in annotation.spans if not span.unit]

    of_lists = decide_numbers_in_lists(lists)
    of_spans = decide_numbers_in_spans(spans)
    return NumberMeaning(of_lists.unit, of_spans.unit, of_lists.doubtful or of_spans.doubtful)


def decide_numbers_in_lists(lists: Sequence[NumberList]) -> Decision:
    """0 and 1 for each token, where a list has as many or says something twice; else the numbers of what is marked."""
    if not lists or numbers_are_flags(lists):
        return Decision("flags")

    fitting = [each for each in lists if numbers_fit_characters(each)]
    if not all(map(numbers_fit_tokens, fitting)):
        return Decision("characters", doubtful=numbers_cut_words(fitting))
    return Decision("tokens", doubtful=any(map(numbers_differ_as_tokens, fitting)))


def numbers_fit_characters(written: NumberList) -> bool:
    """Whether numbers can be those of characters."""
    text, numbers = written
    return mark_numbers_fit(numbers, len(text.text))


def numbers_fit_tokens(written: NumberList) -> bool:
    """Whether numbers can be those of tokens."""
    text, numbers = written
    return mark_numbers_fit(numbers, len(text.tokens))


def numbers_are_flags(lists: Sequence[NumberList]) -> bool:
    """Whether lists are 0 and 1 for each token."""
    found = False
    for text, numbers in lists:
        if not {0, 1}.issuperset(numbers):
            return False
        found |= len(numbers) == len(text.tokens) or has_repeated_mark_numbers(numbers)
    return found


def numbers_cut_words(lists: Sequence[NumberList]) -> bool:
    """Whether lists, read as characters, begin or end inside of words more often than not."""
    on_edges = []
    for text, numbers in lists:
        for start, end in runs_of_mark_numbers(numbers):
            on_edges.append(characters_are_on_edges(text.text, start, end))
    return are_fewer(on_edges)


def are_fewer(facts: Sequence[bool]) -> bool:
    """Whether fewer than half are true."""
    return sum(facts) < len(facts) / 2


def numbers_differ_as_tokens(written: NumberList) -> bool:
    """Whether a list marks something else as numbers of tokens than as numbers of characters."""
    text, numbers = written
    as_tokens = spans_of_numbers(text, numbers, unit="tokens")
    as_characters = spans_of_numbers(text, numbers, unit="characters")
    return as_tokens != as_characters


def characters_are_on_edges(text: str, start: int, end: int) -> bool:
    """Whether a span of characters cuts no word at its ends."""
    return not character_is_inside_word(text, start) and not character_is_inside_word(text, end)


def character_is_inside_word(text: str, place: int) -> bool:
    """Whether there are letters or digits on both sides of a place."""
    around = text[place - 1 : place + 1] if place else ""
    return len(around) == 2 and around.isalnum()


def decide_numbers_in_spans(spans: Sequence[tuple[TokenizedText, WrittenSpan]]) -> Decision:
    """Characters, unless they do not fit and tokens do, or both fit and characters would cut words."""
    only_characters = only_tokens = differ = False
    on_edges: list[bool] = []

    for text, span in spans:
        as_characters = place_span(text, span, unit="characters")
        as_tokens = place_span(text, span, unit="tokens")
        differ |= as_characters != as_tokens
        only_tokens |= as_characters is None and as_tokens is not None
        if as_characters is not None:
            only_characters |= as_tokens is None
            on_edges.append(
                characters_are_on_edges(text.text, as_characters.start, as_characters.end)
            )

    if only_tokens and not only_characters:
        return Decision("tokens")
    if only_characters or not differ:
        return Decision("characters")

    unit = "tokens" if are_fewer(on_edges) else "characters"
    return Decision(unit, doubtful=True)
