"""The documents of an example, as ERASER counts them, their tokens, and the units of each token.

A record of ERASER asks about one or several documents, and several records may ask about the same one. So a document
has a name of its own, which is not that of the record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from raison.core.json_record import JsonObject
from raison.core.records import Example, Units

__all__ = [
    "ERASER_CLASSES",
    "Document",
    "documents_in_meta",
    "documents_of",
    "named_documents",
    "spans_of_eraser_tokens",
    "units_of_eraser_tokens",
]

# what the meta of an example says
ERASER_DOCUMENTS = "eraser_documents"  # name -> [text, first character, end]
ERASER_CLASSES = "eraser_classes"  # class, as it is called here -> as the publisher calls it


LINE = re.compile(r"[^\r\n]+")
WORD = re.compile(r"[^ ]+")


@dataclass(frozen=True)
class Document:
    """A part of an example that has a name."""

    name: str
    segment: int  # which text of the example: 0 or 1
    start: int  # first character
    end: int  # one past the last character


def documents_in_meta(documents: Sequence[Document]) -> JsonObject:
    """What the meta of an example says about its documents."""
    places = {}
    for document in documents:
        places[document.name] = [document.segment, document.start, document.end]
    return {ERASER_DOCUMENTS: places}


def named_documents(example: Example) -> list[Document]:
    """The documents that a data set has named; none where it knows texts only."""
    known = example.meta.get(ERASER_DOCUMENTS)
    if not isinstance(known, Mapping):
        return []
    return [Document(name, *place) for name, place in known.items()]


def documents_of(example: Example, segments: Sequence[str]) -> list[Document]:
    """The documents of an example: those that the data set names, else its texts, named after the example.

    `segments` are the names of the texts: a pair has a document for each, as in ERASER's e-SNLI.
    """
    known = named_documents(example)
    if known:
        return known
    if example.pair is None:
        return [Document(example.id, 0, 0, len(example.text))]
    documents = []
    for index, text in enumerate((example.text, example.pair)):
        name = f"{example.id}_{segments[index]}"
        documents.append(Document(name, index, start=0, end=len(text)))
    return documents


def spans_of_eraser_tokens(text: str, document: Document | None = None) -> list[tuple[int, int]]:
    """Characters of each token of a document, split as ERASER does: at line ends, and at spaces inside a line.

    Other white space belongs to a token, except at the ends of a line.
    """
    start, end = 0, len(text)
    if document is not None:
        start, end = document.start, document.end

    spans: list[tuple[int, int]] = []
    for line in LINE.finditer(text, start, end):
        content = line.group()
        indent = len(content) - len(content.lstrip())
        first = line.start() + indent
        last = line.start() + len(content.rstrip())
        for word in WORD.finditer(text, first, last):
            spans.append(word.span())
    return spans


def units_of_eraser_tokens(
    document: Document, places: Sequence[tuple[int, int]], units: Units
) -> list[list[int]]:
    """For each token of a document the units that share a character with it."""
    candidates = []
    for unit, (segment, unit_start, unit_end) in enumerate(units.spans):
        if segment == document.segment and unit_start >= 0:
            candidates.append((unit_start, unit_end, unit))
    candidates.sort(key=itemgetter(0))

    units_by_token: list[list[int]] = []
    first = 0
    for start, end in places:
        while first < len(candidates):
            _, unit_end, _ = candidates[first]
            if unit_end > start:
                break
            first += 1
        inside: list[int] = []
        for unit_start, unit_end, unit in candidates[first:]:
            if unit_start >= end:
                break
            if start < unit_end:
                inside.append(unit)
        units_by_token.append(inside)
    return units_by_token
