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
from typing import NamedTuple

from raison.core.errors import InputError
from raison.datasets.character_spans import Places, join_words
from raison.datasets.text_files import read_good_lines

__all__ = ["NotConllu", "Sentence", "Word", "parse_sentence", "read_conllu", "sentence_blocks"]

COLUMNS = 10
ROOT = -1  # the head of the root


class NotConllu(InputError):
    """A line that is not what the format wants."""

    def __init__(self, path: Path, line: int, why: str):
        super().__init__(
            f"Line {line} of {path.name!r} is not CoNLL-U ({why}): mend the line, or have plain text parsed (--parse)."
        )
        self.line = line
        self.why = why


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


class Line(NamedTuple):
    """A line of a sentence; its columns have the names that Universal Dependencies gives them."""

    number: int  # in the file
    columns: list[str]

    @property
    def id(self) -> str:
        return self.columns[0]

    @property
    def form(self) -> str:
        return self.columns[1]

    @property
    def upos(self) -> str:
        return self.columns[3]

    @property
    def head(self) -> str:
        return self.columns[6]

    @property
    def deprel(self) -> str:
        return self.columns[7]

    @property
    def form_and_space(self) -> str:
        """The form, and the space behind it unless the last column says that there is none."""
        misc = self.columns[9].split("|")
        return self.form if "SpaceAfter=No" in misc else f"{self.form} "


class Block(NamedTuple):
    """What stands between two blank lines."""

    lines: list[Line]
    comments: dict[str, str]  # by name: text, sent_id


class Token(NamedTuple):
    """What stands in the text without a space inside: one word, or several that share it."""

    line: Line
    first: int  # number of its first word, from 1
    last: int


def read_conllu(path: str | Path, limit: int | None = None) -> list[Sentence]:
    """The first `limit` sentences (by default all) of a CoNLL-U file, plain or compressed (.gz)."""
    sentences = list(islice(iterate_sentences(Path(path)), limit))
    if not sentences:
        raise InputError(f"{str(path)!r} holds no sentence: name a CoNLL-U file.")
    return sentences


def iterate_sentences(path: Path) -> Iterator[Sentence]:
    """Sentences one by one, so that nobody waits for the end of a large treebank."""
    for block in sentence_blocks(enumerate(read_good_lines(path), 1)):
        yield parse_sentence(path, block)


def sentence_blocks(numbered_lines: Iterable[tuple[int, str]]) -> Iterator[Block]:
    """The lines between blank lines, by their numbers; what stands there is checked later."""
    block = Block([], {})
    for number, line in numbered_lines:
        if line.startswith("#"):
            name, _, value = line[1:].partition("=")
            block.comments.setdefault(name.strip(), value.strip())
        elif line.strip():
            block.lines.append(Line(number, line.split("\t")))
        elif block.lines:
            yield block
            block = Block([], {})
    if block.lines:
        yield block


def parse_sentence(path: Path, block: Block) -> Sentence:
    """The sentence of a block of lines."""
    lines, tokens = conllu_words_and_tokens(path, block)
    text, places = place_conllu_words(
        path,
        lines,
        tokens,
        text=block.comments.get("text"),
    )

    words = []
    for line, (start, end) in zip(lines, places, strict=True):
        head = conllu_head(path, line, len(lines))
        tag = "" if line.upos == "_" else line.upos
        word = Word(
            start,
            end,
            head=head,
            relation=line.deprel,
            tag=tag,
        )
        words.append(word)

    id = block.comments.get("sent_id", "")
    return Sentence(text, tuple(words), id)


def conllu_head(path: Path, line: Line, size: int) -> int:
    """The number of the word that a word depends on, from 0; -1: it is the root."""
    if not re.fullmatch(r"[0-9]+", line.head) or int(line.head) > size:
        why = f"the head {line.head!r} is no word of a sentence of {size}"
        raise NotConllu(path, line.number, why)
    return int(line.head) - 1


def conllu_words_and_tokens(path: Path, block: Block) -> tuple[list[Line], list[Token]]:
    """The lines of the words, and the tokens that hold several of them."""
    words: list[Line] = []
    tokens: dict[int, Token] = {}  # by their first word

    for line in block.lines:
        if len(line.columns) != COLUMNS:
            why = f"{len(line.columns)} columns between tabs, not {COLUMNS}"
            raise NotConllu(path, line.number, why)

        number = len(words) + 1
        if re.fullmatch(r"[0-9]+-[0-9]+", line.id):
            tokens[number] = conllu_token_of_line(path, line, number)
        elif line.id == str(number):
            words.append(line)
        elif not re.fullmatch(r"[0-9]+\.[0-9]+", line.id):  # which would be an empty node
            why = f"a word has the number {line.id!r}, not {number}"
            raise NotConllu(path, line.number, why)

    if not words:
        first = block.lines[0]
        raise NotConllu(path, first.number, "a sentence without words")
    last = len(words)
    for token in tokens.values():
        if token.last > last:
            why = f"the token {token.line.id} goes beyond the last word, {last}"
            raise NotConllu(path, token.line.number, why)
    return words, list(tokens.values())


def conllu_token_of_line(path: Path, line: Line, number: int) -> Token:
    """The token of several words of a line such as 3-4; `number` is that of the next word."""
    first, last = map(int, line.id.split("-"))
    if first != number or last < first:
        why = f"the token {line.id} does not begin with the next word"
        raise NotConllu(path, line.number, why)
    return Token(line, first, last)


def place_conllu_words(
    path: Path,
    words: list[Line],
    tokens: list[Token],
    *,
    text: str | None,
) -> tuple[str, Places]:
    """The text and the characters of each word in it; a file without texts has them put together from its words."""
    surface = conllu_surface_tokens(words, tokens)
    if text is None:
        pieces = [token.line.form_and_space for token in surface]
        text = "".join(pieces).rstrip()

    places: Places = []
    cursor = 0
    for token in surface:
        form = token.line.form
        start = skip_blank_conllu_lines(text, cursor)
        if not form or not text.startswith(form, start):
            why = f"the word {form!r} does not stand next in the text of the sentence"
            raise NotConllu(path, token.line.number, why)

        cursor = start + len(form)
        lines = words[token.first - 1 : token.last]
        places += places_in_conllu_token(form, [line.form for line in lines], start)
    return text, places


def skip_blank_conllu_lines(text: str, place: int) -> int:
    """The next place that is no white space."""
    rest = text[place:]
    return place + len(rest) - len(rest.lstrip())


def conllu_surface_tokens(words: list[Line], tokens: list[Token]) -> list[Token]:
    """All tokens of the text in its order; a word that no token holds is one itself."""
    by_first = {token.first: token for token in tokens}
    surface = []
    number = 1
    while number <= len(words):
        token = by_first.get(number) or Token(words[number - 1], number, number)
        surface.append(token)
        number = token.last + 1
    return surface


def places_in_conllu_token(form: str, words: list[str], start: int) -> Places:
    """The characters of the words of one token: their own where they spell it, else all of them."""
    if "".join(words) != form:
        whole = (start, start + len(form))
        return [whole for _ in words]

    _, places = join_words(words, glue="")
    return [(start + first, start + end) for first, end in places]
