"""Parallel text: two files line by line, or both sentences in a line; with or without alignments of their words.

Links are written `i-j` where they are sure and `ipj` where they are possible. In examples they count words from 0:
`meta["sure"]` and `meta["possible"]` hold lists [i, j]; a sure link is possible as well and is not listed twice. The
words' characters are `meta["source_words"]` and `meta["target_words"]`, the translation is the label.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.character_spans import Places, find_tokens
from raison.datasets.dataset_rows import Broken, Row, Rows, map_rows
from raison.datasets.text_files import read_lines

__all__ = [
    "WordLinks",
    "parallel_example",
    "parse_alignment",
    "parse_alignment_links",
    "read_parallel_text",
    "zip_parallel_rows",
]

Link = tuple[int, int]  # numbers of the words, from 0
BETWEEN = "|||"  # between the parts of a line


@dataclass(frozen=True)
class WordLinks:
    """The links between the words of a sentence and those of its translation."""

    sure: list[Link] = field(default_factory=list)
    possible: list[Link] = field(default_factory=list)

    def beyond(self, source_size: int, target_size: int) -> list[Link]:
        """The links that name a word behind the end of its sentence."""
        return [
            (i, j) for i, j in (*self.sure, *self.possible) if i >= source_size or j >= target_size
        ]

    def without(self, links: Sequence[Link]) -> WordLinks:
        """The links that are none of these."""
        sure = [link for link in self.sure if link not in links]
        possible = [link for link in self.possible if link not in links]
        return WordLinks(sure, possible)


def zip_parallel_rows(*files: Rows[str]) -> Rows[tuple[str, ...]]:
    """Lines of the same number; a line that only one of the files has is broken."""
    for rows in zip_longest(*files):
        broken = [row for row in rows if isinstance(row, Broken)]
        if broken:
            yield broken[0]
            continue

        good = [row for row in rows if isinstance(row, Row)]
        first = good[0]
        if len(good) < len(rows):
            yield first.broken("the other file ends before this line")
            continue

        values = [row.value for row in good]
        mended: dict[str, None] = {}  # in order, each once
        for row in good:
            mended.update(dict.fromkeys(row.mended))
        yield Row(
            first.file,
            first.line,
            value=tuple(values),
            mended=tuple(mended),
        )


def parse_alignment_links(text: str, base: int) -> WordLinks:
    """Sure and possible links, counted from 0; `base` is the number of the first word in the file."""
    links = WordLinks()
    for piece in text.split():
        match = re.fullmatch(r"([0-9]+)([-p])([0-9]+)", piece)
        if match is None:
            raise InputError(f"{piece!r} is no link between two words.")

        source = int(match[1]) - base
        target = int(match[3]) - base
        if min(source, target) < 0:
            raise InputError(f"the link {piece!r} counts words from 0, not from {base}.")

        kind = links.sure if match[2] == "-" else links.possible
        kind.append((source, target))
    return links


def parse_alignment(value: object, base: int) -> WordLinks:
    """Links as a file may hold them: Pharaoh's `0-1 2p3`, or a list of pairs of numbers, which are sure."""
    if isinstance(value, str):
        return parse_alignment_links(value, base)
    if not isinstance(value, (list, tuple)):
        kind = type(value).__name__
        raise InputError(f"the alignment is {kind}: write it like 0-1 2p3.")

    pieces = []
    for link in value:
        if isinstance(link, (list, tuple)) and len(link) == 2:
            source, target = link
            pieces.append(f"{source}-{target}")
        else:
            pieces.append(str(link))
    return parse_alignment_links(" ".join(pieces), base)


def parallel_example(
    source: str,
    target: str,
    links: WordLinks,
    *,
    id: str,
    source_words: Places | None = None,
    drop: bool = False,
    base: int | None = None,
) -> Example:
    """A sentence with its translation and the links between their words; `drop` leaves out links beyond a sentence.

    `base` is said where a user has chosen it, and could choose another.
    """
    source_words = find_tokens(source) if source_words is None else source_words
    target_words = find_tokens(target)

    beyond = links.beyond(len(source_words), len(target_words))
    if beyond and not drop:
        i, j = beyond[0]
        sizes = f"the {len(source_words)} and {len(target_words)} words"
        hint = ": where the first word is number 1, say base=1" if base == 0 else ""
        raise InputError(f"the link {i}-{j} (from 0) goes beyond {sizes}{hint}.")

    inside = links.without(beyond)
    meta: dict[str, object] = {
        "sure": inside.sure,
        "possible": inside.possible,
        "source_words": source_words,
        "target_words": target_words,
    }
    if beyond:
        meta["dropped"] = beyond
    return Example(source, id=id, label=target, meta=meta)


def read_parallel_text(
    source: Path,
    translation: Path | None,
    alignment: Path | None,
    *,
    base: int = 0,
    other: str = "",
) -> Rows[Example]:
    """A user's parallel text in one file, `source ||| translation ||| links`, or in up to three, line by line."""
    paths = [path for path in (source, translation, alignment) if path is not None]
    files = [read_lines(path, other=other) for path in paths]

    def example(row: Row[tuple[str, ...]]) -> Example:
        parts = split_parallel_lines(
            row.value, translated=translation is not None, linked=alignment is not None
        )
        text, label, *links = parts
        if not label.strip():
            raise InputError("it has no translation.")
        if not links:
            return Example(text.strip(), id=str(row.line), label=label.strip())
        return parallel_example(
            text.strip(),
            label.strip(),
            parse_alignment_links(links[0], base),
            id=str(row.line),
            base=base,
        )

    return map_rows(zip_parallel_rows(*files), example)


def split_parallel_lines(lines: Sequence[str], *, translated: bool, linked: bool) -> list[str]:
    """Source, translation and, where there are some, links, of the lines of all files with one number."""
    first, *others = lines
    if translated:
        return [first, *others]

    parts = first.split(BETWEEN)
    if len(parts) < 2:
        raise InputError(f"no {BETWEEN} stands between the two sentences.")

    most = 3
    more = "source, translation and links are all there is"
    if linked:
        most = 2
        more = "the links are in a file of their own"
    if len(parts) > most:
        raise InputError(f"the line has {len(parts)} parts between {BETWEEN}: {more}.")
    return [*parts, *others]
