"""Overlap of two sets of texts: what stands in another set too must not be trained on."""

from __future__ import annotations

import re
from collections.abc import Iterable

from raison.core.parameters import check_integer
from raison.core.records import Example

__all__ = ["normalise_text_for_overlap", "overlap"]


def overlap(
    train: Iterable[str | Example], test: Iterable[str | Example], *, letters: int | None = None
) -> list[int]:
    """Indices of the texts in `train` that also stand in `test`; its length is their number.

    Texts are compared by their letters and digits in lower case, so that other punctuation, spacing and casing do not
    hide a copy. With `letters` only that many from the start are compared, which finds copies that were mended or cut
    later on (150 is a good number for reviews). Of a pair both texts must be the same. A text without letters or digits
    equals no other.
    """
    if letters is not None:
        check_integer("letters", letters, 1)
    tested = {normalise_text_for_overlap(text, letters) for text in test}

    copies = []
    for index, text in enumerate(train):
        key = normalise_text_for_overlap(text, letters)
        if any(key) and key in tested:
            copies.append(index)
    return copies


def normalise_text_for_overlap(text: str | Example, letters: int | None = None) -> tuple[str, str]:
    """The first letters and digits of a text (and of its pair) in lower case."""
    pair = ""
    if isinstance(text, Example):
        pair = text.pair or ""
        text = text.text
    first = letters_for_overlap(text)
    second = letters_for_overlap(pair)
    return first[:letters], second[:letters]


def letters_for_overlap(text: str) -> str:
    """The letters and digits of a text in lower case."""
    return re.sub(r"[\W_]+", "", text.lower())
