"""Parallel text: two files line by line, or both sentences in a line; with or without alignments of their words.

Links are written `i-j` where they are sure and `ipj` where they are possible. In examples they count words from 0:
`meta["sure"]` and `meta["possible"]` hold lists [i, j]; a sure link is possible as well and is not listed twice. The
words' characters are `meta["source_words"]` and `meta["target_words"]`, the translation is the label.
"""

from __future__ import annotations

import re
from itertools import zip_longest

from raison.datasets.rows import Broken, Row, Rows
from raison.datasets.spans import tokens
from raison.errors import InputError
from raison.types import Example

__all__ = ["aligned", "links", "side_by_side"]

Links = list[tuple[int, int]]


def side_by_side(*files: Rows[str]) -> Rows[tuple[str, ...]]:
    """Lines of the same number; a line that only one of the files has is broken."""
    for rows in zip_longest(*files):
        there = [row for row in rows if row is not None]
        wrong = next((row for row in there if isinstance(row, Broken)), None)
        if wrong is not None:
            yield wrong
            continue
        good = [row for row in there if isinstance(row, Row)]
        if len(good) < len(rows):
            yield Broken(good[0].file, good[0].line, "the other file ends before this line")
            continue
        mended = tuple(dict.fromkeys(what for row in good for what in row.mended))
        yield Row(good[0].file, good[0].line, tuple(row.value for row in good), mended)


def links(text: str, base: int) -> tuple[Links, Links]:
    """Sure and possible links, counted from 0; `base` is the number of the first word in the file."""
    sure: Links = []
    possible: Links = []
    for piece in text.split():
        match = re.fullmatch(r"([0-9]+)([-p])([0-9]+)", piece)
        if match is None:
            raise InputError(f"{piece!r} is no link between two words.")
        link = (int(match[1]) - base, int(match[3]) - base)
        if min(link) < 0:
            raise InputError(f"the link {piece!r} counts words from 0, not from {base}.")
        (sure if match[2] == "-" else possible).append(link)
    return sure, possible


def aligned(
    source: str,
    target: str,
    gold: tuple[Links, Links],
    *,
    id: str,
    source_words: list[tuple[int, int]] | None = None,
    drop: bool = False,
) -> Example:
    """A sentence with its translation and the links between their words; `drop` leaves out links beyond a sentence."""
    source_words = tokens(source) if source_words is None else source_words
    target_words = tokens(target)
    beyond = [(i, j) for kind in gold for i, j in kind if i >= len(source_words) or j >= len(target_words)]
    if beyond and not drop:
        i, j = beyond[0]
        raise InputError(
            f"the link {i}-{j} (from 0) goes beyond the {len(source_words)} and {len(target_words)} words."
        )
    sure, possible = ([link for link in kind if link not in beyond] for kind in gold)
    meta = {"sure": sure, "possible": possible, "source_words": source_words, "target_words": target_words}
    return Example(source, id=id, label=target, meta={**meta, "dropped": beyond} if beyond else meta)
