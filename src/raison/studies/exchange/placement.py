"""Placing the tokens of another tool, with their scores, on our units.

What was made elsewhere has tokens of its own. They are found in the text, one after the other, and a unit of ours gets
the sum of the scores of the tokens that it shares characters with, in proportion; so any tokenizer will do. Where too
many are found nowhere, the explanation is about another text, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.errors import InputError
from raison.core.records import Encoding, Units
from raison.studies.exchange.external_explanation import ExternalExplanation

__all__ = ["PlacedScores", "place_on_units", "placed_spans_of_tokens"]

MARKS = ("Ġ", "▁", "##", "</w>", "Ċ")  # of sub-words, by the tokenizers in use
SPECIAL = re.compile(r"\[.*\]|<.*>")  # [CLS], </s>, <|endoftext|>
FOREIGN = 0.25  # share of tokens that may stand nowhere in the text: rare letters that a tokenizer writes otherwise
FAR = 40  # characters between a token and the one before it that make it another word of the same letters

Characters = tuple[int, int]  # first, and one past the last


@dataclass(frozen=True)
class PlacedScores:
    """An explanation on our units."""

    scores: np.ndarray  # [u]
    selected: np.ndarray | None  # [u]
    unplaced: int = 0  # tokens that stand nowhere in the text


@dataclass(frozen=True)
class PlacedTokens:
    """Where the tokens of an explanation stand in its texts, which follow each other with a line end between them."""

    spans: list[Characters | None]  # [k]
    begins: list[int]  # where each text of the encoding begins
    unplaced: int


def place_on_units(
    explanation: ExternalExplanation, encoding: Encoding, units: Units
) -> PlacedScores:
    """The scores and the selection of an explanation on our units."""
    written = explanation.written
    if written is not None and written.spans == units.spans:
        return PlacedScores(written.scores, written.selected)

    placed = place_tokens(explanation, encoding)
    values = explanation.values
    scores = np.zeros(len(units))
    selected = np.zeros(len(units), bool)
    for token, span in enumerate(placed.spans):
        if span is None:
            continue
        length = span[1] - span[0]
        for unit, (segment, start, end) in enumerate(units.spans):
            if explanation.about not in (None, segment) or start < 0:
                continue
            begin = placed.begins[segment]
            first = max(begin + start, span[0])
            last = min(begin + end, span[1])
            shared = last - first
            if shared <= 0:
                continue
            scores[unit] += values[token] * shared / length
            if explanation.selected is not None and explanation.selected[token]:
                selected[unit] = True
    if explanation.selected is None:
        return PlacedScores(scores, None, placed.unplaced)
    return PlacedScores(scores, selected, placed.unplaced)


def place_tokens(explanation: ExternalExplanation, encoding: Encoding) -> PlacedTokens:
    """Find all tokens in the texts; refuse an explanation of which too many stand nowhere."""
    if explanation.about is None:
        texts = encoding.texts
        begins = places_of_texts(texts)
    else:
        texts = (encoding.texts[explanation.about],)
        begins = [0] * len(encoding.texts)
    spans = placed_spans_of_tokens(explanation.tokens, "\n".join(texts))

    foreign = []
    words = 0
    for token, span in zip(explanation.tokens, spans, strict=True):
        is_word = bool(token_without_marks(token)) and not SPECIAL.fullmatch(token)
        if span is None and is_word:
            foreign.append(token)
        words += span is not None or is_word

    if not words or len(foreign) >= max(1, FOREIGN * words):
        such = ""
        if foreign:
            such = f", such as {foreign[0]!r},"
        raise InputError(
            f"{len(foreign)} of {words} tokens of the explanation of {encoding.id!r}{such} do not stand in its "
            f"text {texts[0][:40]!r}: are the ids those of the data set?"
        )
    return PlacedTokens(spans, begins, len(foreign))


def places_of_texts(texts: Sequence[str]) -> list[int]:
    """Where each text begins, when they follow each other with a line end between them."""
    begins = []
    begin = 0
    for text in texts:
        begins.append(begin)
        begin += len(text) + 1
    return begins


def placed_spans_of_tokens(tokens: Sequence[str], text: str) -> list[Characters | None]:
    """Characters of each token, in order; None for what does not stand in the text (special tokens)."""
    lower = text.lower()
    folded = text
    if len(lower) == len(text):
        folded = lower
    spans: list[Characters | None] = []
    cursor = 0
    for token in tokens:
        span = find_token_in_text(token_without_marks(token), text, folded, cursor)
        spans.append(span)
        if span is not None:
            cursor = span[1]
    return spans


def find_token_in_text(token: str, text: str, folded: str, cursor: int) -> Characters | None:
    """Where a token stands next, as it is written or in small letters, whichever is nearer."""
    if not token:
        return None
    as_written = text.find(token, cursor)
    # an uncased tokenizer writes small letters
    in_small_letters = folded.find(token.lower(), cursor)
    places = [place for place in (as_written, in_small_letters) if place >= 0]
    if not places:
        return None
    start = min(places)
    skipped = text[cursor:start].strip()
    if len(skipped) > FAR:
        return None
    return start, start + len(token)


def token_without_marks(token: str) -> str:
    """A token without the marks of its tokenizer."""
    for mark in MARKS:
        token = token.removeprefix(mark).removesuffix(mark)
    return token.strip()
