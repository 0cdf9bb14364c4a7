"""Texts of one set that also stand in another: what must not be trained on."""

from __future__ import annotations

import re
from collections.abc import Iterable

from raison.core.records import Example
from raison.core.spec import whole

__all__ = ["normalised", "overlap"]


def overlap(train: Iterable[str | Example], test: Iterable[str | Example], *, letters: int | None = None) -> list[int]:
    """Indices of the texts in `train` that also stand in `test`; its length is their number.

    Texts are compared by their letters and digits in lower case, so that other punctuation, spacing and casing do not
    hide a copy. With `letters` only that many from the start are compared, which finds copies that were mended or cut
    later on (150 is a good number for reviews). Of a pair both texts must be the same. A text without letters or digits
    equals no other.
    """
    if letters is not None:
        whole("letters", letters, 1)
    known = {normalised(text, letters) for text in test}
    return [index for index, text in enumerate(train) if any(key := normalised(text, letters)) and key in known]


def normalised(text: str | Example, letters: int | None = None) -> tuple[str, str]:
    """The first letters and digits of a text (and of its pair) in lower case."""
    first, second = (text.text, text.pair or "") if isinstance(text, Example) else (text, "")
    return bare(first)[:letters], bare(second)[:letters]


def bare(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())
