"""Parallel text: two files line by line, or both sentences in a line; with or without alignments of their words.

Links are written `i-j` where they are sure and `ipj` where they are possible. In examples they count words from 0:
`meta["sure"]` and `meta["possible"]` hold lists [i, j]; a sure link is possible as well and is not listed twice. The
words' characters are `meta["source_words"]` and `meta["target_words"]`, the translation is the label.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.rows import Broken, Row, Rows, each, lines
from raison.datasets.spans import tokens

__all__ = ["aligned", "links", "links_of", "sentences", "side_by_side"]

Links = list[tuple[int, int]]
BETWEEN = "|||"  # between the parts of a line


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


def links_of(given: Any, base: int) -> tuple[Links, Links]:
    """Links as a file may hold them: Pharaoh's `0-1 2p3`, or a list of pairs of numbers, which are sure."""
    if isinstance(given, str):
        return links(given, base)
    if not isinstance(given, (list, tuple)):
        raise InputError(f"the alignment is {type(given).__name__}: write it like 0-1 2p3.")
    pieces = []
    for each_one in given:
        pair = isinstance(each_one, (list, tuple)) and len(each_one) == 2
        pieces.append("-".join(map(str, each_one)) if pair else str(each_one))
    return links(" ".join(pieces), base)


def aligned(
    source: str,
    target: str,
    gold: tuple[Links, Links],
    *,
    id: str,
    source_words: list[tuple[int, int]] | None = None,
    drop: bool = False,
    base: int | None = None,
) -> Example:
    """A sentence with its translation and the links between their words; `drop` leaves out links beyond a sentence.

    `base` is said where a user has chosen it, and could choose another.
    """
    source_words = tokens(source) if source_words is None else source_words
    target_words = tokens(target)
    beyond = [(i, j) for kind in gold for i, j in kind if i >= len(source_words) or j >= len(target_words)]
    if beyond and not drop:
        i, j = beyond[0]
        hint = ": where the first word is number 1, say base=1" if base == 0 else ""
        raise InputError(
            f"the link {i}-{j} (from 0) goes beyond the {len(source_words)} and {len(target_words)} words{hint}."
        )
    sure, possible = ([link for link in kind if link not in beyond] for kind in gold)
    meta = {"sure": sure, "possible": possible, "source_words": source_words, "target_words": target_words}
    return Example(source, id=id, label=target, meta={**meta, "dropped": beyond} if beyond else meta)


def sentences(
    source: Path, translation: Path | None, alignment: Path | None, *, base: int = 0, other: str = ""
) -> Rows[Example]:
    """A user's parallel text in one file, `source ||| translation ||| links`, or in up to three, line by line."""
    named = [path for path in (source, translation, alignment) if path is not None]
    files = [lines(path, other=other) for path in named]

    def example(row: Row[tuple[str, ...]]) -> Example:
        parts = parts_of(row.value, translation is not None, alignment is not None)
        text, label = parts[0].strip(), parts[1].strip()
        if not label:
            raise InputError("it has no translation.")
        if len(parts) == 2:
            return Example(text, id=str(row.line), label=label)
        return aligned(text, label, links(parts[2], base), id=str(row.line), base=base)

    return each(side_by_side(*files), example)


def parts_of(values: Sequence[str], translated: bool, linked: bool) -> list[str]:
    """Source, translation and, where there are some, links, of the lines of all files with one number."""
    inside = [values[0]] if translated else values[0].split(BETWEEN)
    if not translated and len(inside) < 2:
        raise InputError(f"no {BETWEEN} stands between the two sentences.")
    if len(inside) > (2 if linked else 3):
        more = "the links are in a file of their own" if linked else "source, translation and links are all there is"
        raise InputError(f"the line has {len(inside)} parts between {BETWEEN}: {more}.")
    return [*inside, *values[1:]]
