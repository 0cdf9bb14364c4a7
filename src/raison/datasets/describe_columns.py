"""Description of a user's columns in a sentence: what their marks and numbers were taken for, one example, and what
may be wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example, Span
from raison.datasets.annotation_spans import spans_of_annotations
from raison.datasets.annotations import Annotation, TokenizedText
from raison.datasets.character_spans import quote_short
from raison.datasets.column_mapping import ColumnMapping
from raison.datasets.nested_columns import RawRecord

__all__ = ["MarkedRecord", "describe_columns", "describe_doubt"]

DESCRIBED = ("text", "pair", "label", "target", "id")  # fields, in the order of the sentence
COUNTED = {
    "characters": "numbers of characters, from 0",
    "tokens": "numbers of tokens between white space, from 0",
    "flags": "0 or 1 for each token between white space",
}


@dataclass(frozen=True)
class MarkedRecord:
    """A text that people have marked, before numbers mean anything."""

    segment: str  # the name of the text
    text: TokenizedText
    annotations: Sequence[Annotation]


def describe_columns(
    *,
    example: Example,
    record: RawRecord,
    columns: ColumnMapping,
    marked: Sequence[MarkedRecord],
    file: str,
) -> str:
    """Which column is what, how people's marks were read, and one example.

    `record` is the first of the file, `example` the first that shows marks.
    """
    parts = []
    for name in DESCRIBED:
        if name in columns.names or name in record:
            parts.append(f"{name} is {columns.column_of(name)!r}")
    marks = describe_marks(columns, marked)
    if marks:
        parts.append(marks)
    parts.append(describe_example(example))

    known = "; ".join(parts)
    return f"{Path(file).name}: {known}."


def describe_example(example: Example) -> str:
    """An example with its label and its marks."""
    facts = []
    if example.label is not None:
        label = quote_short(str(example.label))
        facts.append(f"the label {label}")
    if example.gold:
        marks = quote_marks(example.gold, example)
        facts.append(f"the marks {marks}")

    shown = f"for example {quote_short(example.text)}"
    if not facts:
        return shown
    known = " and ".join(facts)
    return f"{shown} has {known}"


def describe_marks(columns: ColumnMapping, marked: Sequence[MarkedRecord]) -> str:
    """How the human rationales are written."""
    annotations: list[Annotation] = []
    people = 0
    for record in marked:
        annotations += record.annotations
        people = max(people, len(record.annotations))
    if people == 0:
        return f"marked words stand between {columns.marked!r}" if columns.marked else ""

    kinds = kinds_of_marks(annotations, columns)
    read_as = " or ".join(kinds) or "nothing so far"
    names = " and ".join(map(repr, columns.columns_of("gold")))
    if people == 1:
        return f"gold is {names}, read as {read_as}"
    return (
        f"gold is {names}, read as {read_as} of {people} annotators ({columns.annotators} of them)"
    )


def kinds_of_marks(annotations: Collection[Annotation], columns: ColumnMapping) -> list[str]:
    """The ways in which people have marked something."""
    numbers = words = False
    units: set[str] = set()
    for annotation in annotations:
        numbers |= bool(annotation.numbers)
        words |= bool(annotation.words)
        for span in annotation.spans:
            units.add(span.unit or columns.meaning.spans)

    kinds = []
    if numbers:
        kinds.append(COUNTED[columns.meaning.numbers])
    if units:
        names = " and ".join(sorted(units))
        kinds.append(f"spans of {names}")
    if words:
        kinds.append("words")
    return kinds


def describe_doubt(marked: Sequence[MarkedRecord], columns: ColumnMapping, file: str) -> str:
    """What the numbers of the gold could be as well: both readings of the first record in which they differ."""
    taken = columns.meaning.numbers if any(map(has_numbers, marked)) else columns.meaning.spans
    numbers = f"The numbers of {columns.column_of('gold')!r} in {Path(file).name}"

    for record in marked:
        as_characters = marks_read_as("characters", record, columns)
        as_tokens = marks_read_as("tokens", record, columns)
        if as_characters is not None and as_tokens is not None and as_characters != as_tokens:
            return (
                f"{numbers} could be characters or tokens: as characters they mark {as_characters}, as tokens "
                f"{as_tokens}. They are read as {taken}: say which with numbers=characters or numbers=tokens."
            )
    return (
        f"{numbers} are read as {taken}, which cut words in two: say what they count with numbers=characters or "
        "numbers=tokens."
    )


def has_numbers(record: MarkedRecord) -> bool:
    """Whether anybody has written a list of numbers about a text."""
    return any(annotation.numbers for annotation in record.annotations)


def marks_read_as(unit: str, record: MarkedRecord, columns: ColumnMapping) -> str | None:
    """The words that are marked if numbers count this; None where they do not fit."""
    meaning = replace(columns.meaning, numbers=unit, spans=unit)
    texts = {record.segment: record.text}
    try:
        spans = spans_of_annotations(
            record.annotations, texts, record.segment, meaning=meaning, vote=columns.annotators
        )
    except InputError:
        return None
    return quote_marks(spans, Example(record.text.text))


def quote_marks(spans: Sequence[Span], example: Example) -> str:
    """The first marked words, as they are named in a sentence."""
    words = []
    for span in spans[:3]:
        text = described_text_of_span(span, example)
        words.append(quote_short(text[span.start : span.end]))
    if len(spans) > 3:
        words.append("…")
    return ", ".join(words) or "nothing"


def described_text_of_span(span: Span, example: Example) -> str:
    """The text that a span is about."""
    if example.pair and span.segment in ("second", "context"):
        return example.pair
    return example.text
