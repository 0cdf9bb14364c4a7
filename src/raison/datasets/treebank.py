"""Examples of a treebank in CoNLL-U: the tags of its words are the label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from raison.core.records import Example
from raison.datasets.conllu import NotConllu, Sentence, parse_sentence, sentence_blocks
from raison.datasets.dataset_rows import Broken, Row, Rows, map_rows
from raison.datasets.text_files import read_lines

__all__ = ["TAGS", "read_treebank"]

# universal parts of speech, in the order of the alphabet
TAGS = tuple(
    "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split()
)


def read_treebank(path: Path) -> Rows[Example]:
    """Sentences one by one; `meta` holds the words' characters, heads (from 0; -1: the root) and relations."""
    return map_rows(treebank_sentence_rows(path), treebank_sentence_example)


def treebank_sentence_rows(path: Path) -> Rows[Sentence]:
    """The sentences of a file, each in the row of its first line."""
    unread: dict[int, Broken] = {}
    for block in sentence_blocks(numbered_treebank_lines(path, unread)):
        first = block.lines[0]
        try:
            sentence = parse_sentence(path, block)
        except NotConllu as error:
            fault = Broken(str(path), error.line, f"it is not CoNLL-U: {error.why}")
            yield unread.get(error.line, fault)
        else:
            yield Row(str(path), first.number, sentence)


def numbered_treebank_lines(path: Path, unread: dict[int, Broken]) -> Iterator[tuple[int, str]]:
    """The lines of a file by their numbers; what can't be decoded is put into `unread`."""
    for row in read_lines(path):
        if isinstance(row, Broken):
            unread[row.line] = row
            yield row.line, "?"  # no line of a sentence, so that the sentence around it is broken
        else:
            yield row.line, row.value


def treebank_sentence_example(row: Row[Sentence]) -> Example:
    """The example of a sentence."""
    sentence = row.value
    words = sentence.words
    return Example(
        sentence.text,
        id=sentence.id or str(row.line),
        label=[word.tag for word in words],
        meta={
            "words": [[word.start, word.end] for word in words],
            "heads": [word.head for word in words],
            "relations": [word.relation for word in words],
        },
    )
