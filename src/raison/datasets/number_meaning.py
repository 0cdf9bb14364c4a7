"""What the numbers of a column count: characters, tokens, or 0 and 1 for each token.

Numbers alone do not say it, so some records of the column are looked at together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from raison.datasets.annotation_spans import has_repeats, numbers_fit, place_span, runs_of_numbers, spans_of_numbers
from raison.datasets.annotations import Annotation, NumberMeaning, TokenizedText, WrittenSpan

__all__ = ["decide_meaning"]

NumberList = tuple[TokenizedText, tuple[int, ...]]  # a text, and the numbers that a person wrote about it


class Decision(NamedTuple):
    """What numbers count."""

    unit: str
    doubtful: bool = False


def decide_meaning(samples: Sequence[tuple[TokenizedText, Annotation]], declared: str = "") -> NumberMeaning:
    """What the numbers of a column count, from some of its records; `declared` is what the user says."""
    if declared:
        return NumberMeaning(declared, "tokens" if declared == "tokens" else "characters")

    lists = []
    spans = []
    for text, annotation in samples:
        if annotation.numbers:
            lists.append((text, annotation.numbers))
        spans += [(text, span) for span in annotation.spans if not span.unit]

    of_lists = decide_lists(lists)
    of_spans = decide_spans(spans)
    return NumberMeaning(of_lists.unit, of_spans.unit, of_lists.doubtful or of_spans.doubtful)


def decide_lists(lists: Sequence[NumberList]) -> Decision:
    """0 and 1 for each token, where a list has as many or says something twice; else the numbers of what is marked."""
    if not lists or are_flags(lists):
        return Decision("flags")

    fitting = [(text, numbers) for text, numbers in lists if numbers_fit(numbers, len(text.text))]
    if any(not numbers_fit(numbers, len(text.tokens)) for text, numbers in fitting):
        return Decision("characters", doubtful=lists_cut_words(fitting))

    readings_differ = any(differ_as_tokens(text, numbers) for text, numbers in fitting)
    return Decision("tokens", readings_differ)


def are_flags(lists: Sequence[NumberList]) -> bool:
    """Whether lists are 0 and 1 for each token."""
    if any(set(numbers) - {0, 1} for _, numbers in lists):
        return False
    return any(len(numbers) == len(text.tokens) or has_repeats(numbers) for text, numbers in lists)


def lists_cut_words(lists: Sequence[NumberList]) -> bool:
    """Whether lists, read as characters, begin or end inside of words more often than not."""
    on_edges = []
    for text, numbers in lists:
        for start, end in runs_of_numbers(numbers):
            on_edges.append(is_on_edges(text.text, start, end))
    return sum(on_edges) < len(on_edges) / 2


def differ_as_tokens(text: TokenizedText, numbers: Sequence[int]) -> bool:
    """Whether a list marks something else as numbers of tokens than as numbers of characters."""
    as_tokens = spans_of_numbers(text, numbers, "tokens", "")
    as_characters = spans_of_numbers(text, numbers, "characters", "")
    return as_tokens != as_characters


def is_on_edges(text: str, start: int, end: int) -> bool:
    """Whether a span of characters cuts no word at its ends."""
    at_start = text[start - 1 : start + 1] if start else ""
    at_end = text[end - 1 : end + 1]
    cuts_start = len(at_start) == 2 and at_start.isalnum()
    cuts_end = len(at_end) == 2 and at_end.isalnum()
    return not cuts_start and not cuts_end


def decide_spans(spans: Sequence[tuple[TokenizedText, WrittenSpan]]) -> Decision:
    """Characters, unless they do not fit and tokens do, or both fit and characters would cut words."""
    only_characters = only_tokens = differ = False
    on_edges: list[bool] = []

    for text, span in spans:
        as_characters = place_span(text, span, "characters", "")
        as_tokens = place_span(text, span, "tokens", "")
        differ |= as_characters != as_tokens
        only_tokens |= as_characters is None and as_tokens is not None
        if as_characters is not None:
            only_characters |= as_tokens is None
            on_edges.append(is_on_edges(text.text, as_characters.start, as_characters.end))

    if only_tokens and not only_characters:
        return Decision("tokens")
    if only_characters or not differ:
        return Decision("characters")

    cut_words = sum(on_edges) < len(on_edges) / 2
    return Decision("tokens" if cut_words else "characters", doubtful=True)
