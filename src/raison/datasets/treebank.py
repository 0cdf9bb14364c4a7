"""Examples of a treebank in CoNLL-U: the tags of its words are the label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from raison.core.records import Example
from raison.datasets.conllu import NotConllu, Sentence, blocks, sentence
from raison.datasets.rows import Broken, Row, Rows, each, lines

__all__ = ["TAGS", "trees"]

# universal parts of speech, in the order of the alphabet
TAGS = tuple("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split())


def trees(path: Path) -> Rows[Example]:
    """Sentences one by one; `meta` holds the words' characters, heads (from 0; -1: the root) and relations."""
    unread: dict[int, Broken] = {}

    def numbered() -> Iterator[tuple[int, str]]:
        for row in lines(path):
            if isinstance(row, Broken):
                unread[row.line] = row
                yield row.line, "?"  # no line of a sentence, so that the sentence around it is broken
            else:
                yield row.line, row.value

    def found() -> Rows[Sentence]:
        for rows, notes in blocks(numbered()):
            first = rows[0][0]
            try:
                yield Row(str(path), first, sentence(path, rows, notes))
            except NotConllu as error:
                yield unread.get(error.line) or Broken(str(path), error.line, f"it is not CoNLL-U: {error.why}")

    return each(found(), example)


def example(row: Row[Sentence]) -> Example:
    tree = row.value
    return Example(
        tree.text,
        id=tree.id or str(row.line),
        label=[word.tag for word in tree.words],
        meta={
            "words": [[word.start, word.end] for word in tree.words],
            "heads": [word.head for word in tree.words],
            "relations": [word.relation for word in tree.words],
        },
    )
