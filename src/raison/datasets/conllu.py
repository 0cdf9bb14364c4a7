"""Treebanks in CoNLL-U, the format of Universal Dependencies: ten columns, a blank line between sentences.

Words are known by their characters in the text, never by what they spell: a word that stands twice in a sentence is
two words. Words of a multiword token ("didn't" = "did" + "n't") get their own characters where they spell the token,
else all of its characters. Empty nodes (8.1) stand in no text and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from raison.core.errors import InputError
from raison.datasets.rows import Broken, lines

__all__ = ["NotConllu", "Sentence", "Word", "blocks", "lines_of", "read", "sentence"]

COLUMNS = 10
Line = tuple[int, list[str]]  # its number in the file, and its columns
Block = tuple[list[Line], dict[str, str]]  # the lines of a sentence, and the comments before them


class NotConllu(InputError):
    """A line that is not what the format wants."""

    def __init__(self, path: Path, line: int, why: str):
        super().__init__(
            f"Line {line} of {path.name!r} is not CoNLL-U ({why}): mend the line, or have plain text parsed (--parse)."
        )
        self.line, self.why = line, why


@dataclass(frozen=True)
class Word:
    """A word of a sentence and what it depends on."""

    start: int  # first character in the text
    end: int  # one past the last
    head: int  # number of the word it depends on, counted from 0; -1: the root
    relation: str  # of Universal Dependencies, e.g. nsubj or nsubj:pass
    tag: str = field(default="", compare=False)  # its part of speech (UPOS), where the file has one


@dataclass(frozen=True)
class Sentence:
    """A text and its dependency tree."""

    text: str
    words: tuple[Word, ...]
    id: str = ""


def read(path: str | Path, limit: int | None = None) -> list[Sentence]:
    """The first `limit` sentences (by default all) of a CoNLL-U file, plain or compressed (.gz)."""
    found = list(islice(sentences(Path(path)), limit))
    if not found:
        raise InputError(f"{str(path)!r} holds no sentence: name a CoNLL-U file.")
    return found


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text file in UTF-8, plain or compressed (.gz)."""
    for row in lines(path):
        if isinstance(row, Broken):
            raise InputError(f"{row}.")
        yield row.value


def sentences(path: Path) -> Iterator[Sentence]:
    """Sentences one by one, so that nobody waits for the end of a large treebank."""
    return (sentence(path, *block) for block in blocks(enumerate(lines_of(path), 1)))


def blocks(lines: Iterable[tuple[int, str]]) -> Iterator[Block]:
    """The lines between blank lines, by their numbers; what stands there is checked later."""
    notes: dict[str, str] = {}
    rows: list[Line] = []
    for number, line in lines:
        if line.startswith("#"):
            name, _, value = line[1:].partition("=")
            notes.setdefault(name.strip(), value.strip())
        elif line.strip():
            rows.append((number, line.split("\t")))
        elif rows:
            yield rows, notes
            notes, rows = {}, []
    if rows:
        yield rows, notes


def sentence(path: Path, rows: list[Line], notes: dict[str, str]) -> Sentence:
    """One block of lines."""
    words: list[Line] = []
    groups: dict[int, tuple[int, int, Line]] = {}  # multiword tokens by their first word
    for number, columns in rows:
        if len(columns) != COLUMNS:
            raise NotConllu(path, number, f"{len(columns)} columns between tabs, not {COLUMNS}")
        if re.fullmatch(r"[0-9]+\.[0-9]+", columns[0]):
            continue
        if span := re.fullmatch(r"([0-9]+)-([0-9]+)", columns[0]):
            first, last = int(span[1]), int(span[2])
            if first != len(words) + 1 or last < first:
                raise NotConllu(path, number, f"the token {columns[0]} does not begin with the next word")
            groups[first] = (first, last, (number, columns))
        elif columns[0] != str(len(words) + 1):
            raise NotConllu(path, number, f"a word has the number {columns[0]!r}, not {len(words) + 1}")
        else:
            words.append((number, columns))
    if not words:
        raise NotConllu(path, rows[0][0], "a sentence without words")
    for _, last, (number, columns) in groups.values():
        if last > len(words):
            raise NotConllu(path, number, f"the token {columns[0]} goes beyond the last word, {len(words)}")
    text, spans = placed(path, words, groups, notes.get("text"))
    found = []
    for (number, columns), (start, end) in zip(words, spans, strict=True):
        if not re.fullmatch(r"[0-9]+", columns[6]) or int(columns[6]) > len(words):
            raise NotConllu(path, number, f"the head {columns[6]!r} is no word of a sentence of {len(words)}")
        found.append(Word(start, end, int(columns[6]) - 1, columns[7], columns[3] if columns[3] != "_" else ""))
    return Sentence(text, tuple(found), notes.get("sent_id", ""))


def placed(
    path: Path, words: list[Line], groups: dict[int, tuple[int, int, Line]], text: str | None
) -> tuple[str, list[tuple[int, int]]]:
    """The text and the characters of each word in it; a file without texts has them put together from its words."""
    surface: list[tuple[Line, list[Line]]] = []  # what stands in the text, and the words in it
    place = 1
    while place <= len(words):
        first, last, token = groups.get(place, (place, place, words[place - 1]))
        surface.append((token, words[first - 1 : last]))
        place = last + 1
    if text is None:
        text = "".join(c[1] + ("" if "SpaceAfter=No" in c[9].split("|") else " ") for (_, c), _ in surface).rstrip()
    spans: list[tuple[int, int]] = []
    cursor = 0
    for (number, columns), inside in surface:
        form = columns[1]
        start = cursor + len(text[cursor:]) - len(text[cursor:].lstrip())
        if not form or not text.startswith(form, start):
            raise NotConllu(path, number, f"the word {form!r} does not stand next in the text of the sentence")
        cursor = start + len(form)
        spans += shared(form, [c[1] for _, c in inside], start)
    return text, spans


def shared(form: str, words: list[str], start: int) -> list[tuple[int, int]]:
    """The characters of the words of one token: their own where they spell it, else all of them."""
    if "".join(words) != form:
        return [(start, start + len(form))] * len(words)
    ends = [start + sum(map(len, words[: k + 1])) for k in range(len(words))]
    return list(zip([start, *ends[:-1]], ends, strict=True))
