"""Human rationales as people write them, before they are put on a text: numbers, spans or words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from raison.datasets.character_spans import Places, find_tokens, join_words

__all__ = ["NUMBERS", "VOTES", "Annotation", "NumberMeaning", "TokenizedText", "WrittenSpan"]

NUMBERS = ("characters", "tokens", "flags")  # what numbers count; flags: 0 or 1 for each token
VOTES = (
    "majority",
    "union",
    "any",
    "all",
)  # which marks of several annotators count; any is another name of union


@dataclass(frozen=True)
class WrittenSpan:
    """A span as it is written: from `start` up to, but not including, `end`."""

    start: object  # a whole number, where the file is right
    end: object
    unit: str = ""  # characters or tokens; empty: it does not say
    segment: str = ""  # the text that it is about; empty: it does not say
    stated: object = None  # the words that it is said to hold


@dataclass(frozen=True)
class Annotation:
    """What one person has marked, in one of three ways."""

    numbers: tuple[int, ...] = ()  # a list of numbers
    spans: tuple[WrittenSpan, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.numbers or self.spans or self.words)


@dataclass(frozen=True)
class TokenizedText:
    """A text and where its tokens stand: between white space, or the `words` of which the file has a list."""

    text: str
    words: tuple[str, ...] | None = None

    @cached_property
    def tokens(self) -> Places:
        if self.words is None:
            return find_tokens(self.text)
        _, places = join_words(self.words)
        return places


@dataclass(frozen=True)
class NumberMeaning:
    """What the numbers of a column count."""

    numbers: str = "flags"  # of a list of numbers: one of NUMBERS
    spans: str = "characters"  # of spans: characters or tokens
    doubtful: bool = False  # they could be characters or tokens
