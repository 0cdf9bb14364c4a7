"""What a file was taken for: decided from its first records, and said in a sentence with one example."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from raison.core import progress
from raison.core.errors import DataWarning, InputError
from raison.core.records import Example, Span
from raison.datasets.gold import Annotation, Place, decide, spans_of
from raison.datasets.mapping import Columns, WrongColumns
from raison.datasets.rows import STRANGE, Broken, Row, Rows, each
from raison.datasets.spans import short

__all__ = ["Account", "read_records"]

SAMPLE = 200  # records that are looked at before the first is read
COUNTED = {
    "characters": "numbers of characters, from 0",
    "tokens": "numbers of tokens between white space, from 0",
    "flags": "0 or 1 for each token between white space",
}


@dataclass
class Account:
    """What is said about a file, as soon as its first records have been looked at."""

    sentence: str = ""
    doubts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Sample:
    """A record that can be read, and its marks before numbers mean anything."""

    row: Row[Any]
    usual: str
    place: Place
    annotations: list[Annotation]


def read_records(rows: Rows[Any], columns: Columns, file: str, account: Account) -> Rows[Example]:
    """Examples of records; what their numbers count is decided from the first ones and told in the account."""
    head = list(islice(rows, SAMPLE))
    samples = samples_of(head, columns)
    pairs = [(sample.place, one) for sample in samples for one in sample.annotations]
    made = replace(columns, meaning=decide(pairs, columns.numbers))
    account.sentence = sentence(head, made, samples, file)
    if account.sentence:
        progress.tell(account.sentence)
    if made.meaning.doubtful:
        account.doubts.append(doubt(samples, made, file))
        warnings.warn(account.doubts[-1], DataWarning, stacklevel=2)
    yield from each(chain(head, rows), made)


def samples_of(head: Iterable[Row[Any] | Broken], columns: Columns) -> list[Sample]:
    """The records that can be read so far; the others are told later, as broken."""
    found = []
    for row in head:
        if isinstance(row, Broken):
            continue
        try:
            written = columns.written(row.value, row.file)
        except (InputError, WrongColumns, *STRANGE):
            continue
        place = written.places.get(written.usual)
        if place is not None:
            found.append(Sample(row, written.usual, place, written.annotations))
    return found


def sentence(head: Sequence[Row[Any] | Broken], columns: Columns, samples: Sequence[Sample], file: str) -> str:
    """Which column is what, how people's marks were read, and one example; nothing where no record can be read."""
    example = first_example(head, columns)
    if example is None:
        return ""
    first = next(row.value for row in head if isinstance(row, Row))
    fields = ("text", "pair", "label", "target", "id")
    parts = [f"{field} is {columns.names.get(field, field)!r}" for field in fields if has(columns, first, field)]
    marks = how_marked(columns, samples)
    if marks:
        parts.append(marks)
    shown = f"for example {short(example.text)}"
    if example.label is not None:
        shown += f" has the label {short(str(example.label))}"
    if example.gold:
        shown += f"{' and' if example.label is not None else ' has'} the marks {quoted(example.gold, example)}"
    return f"{Path(file).name}: {'; '.join(parts)}; {shown}."


def has(columns: Columns, record: Any, field_name: str) -> bool:
    return field_name in columns.names or field_name in record


def how_marked(columns: Columns, samples: Sequence[Sample]) -> str:
    """How the human rationales are written."""
    name = columns.names.get("gold", "gold")
    asked = [sample.annotations for sample in samples if sample.annotations]
    if not asked:
        return f"marked words stand between {columns.marked!r}" if columns.marked else ""
    people = max(len(each_one) for each_one in asked)
    every = [one for annotations in asked for one in annotations]
    kinds = []
    if any(one.numbers for one in every):
        kinds.append(COUNTED[columns.meaning.numbers])
    if any(one.ranges for one in every):
        units = {each_range.unit or columns.meaning.ranges for one in every for each_range in one.ranges}
        kinds.append(f"spans of {' and '.join(sorted(units))}")
    if any(one.words for one in every):
        kinds.append("words")
    kind = " or ".join(kinds) or "nothing so far"
    named = " and ".join(map(repr, name)) if isinstance(name, tuple) else repr(name)
    several = f" of {people} annotators ({columns.annotators} of them)" if people > 1 else ""
    return f"gold is {named}, read as {kind}{several}"


def first_example(head: Iterable[Row[Any] | Broken], columns: Columns) -> Example | None:
    """The first example with marks, else the first."""
    first = None
    for row in head:
        if isinstance(row, Broken):
            continue
        try:
            example = columns(row)
        except (InputError, WrongColumns, *STRANGE):
            continue
        if example.gold:
            return example
        first = first or example
    return first


def doubt(samples: Sequence[Sample], columns: Columns, file: str) -> str:
    """Both readings of the first record in which they differ."""
    taken = columns.meaning.numbers if any_numbers(samples) else columns.meaning.ranges
    name = columns.names.get("gold", "gold")
    for sample in samples:
        readings = {}
        for unit in ("characters", "tokens"):
            meaning = replace(columns.meaning, numbers=unit, ranges=unit)
            places = {sample.usual: sample.place}
            try:
                spans = spans_of(sample.annotations, places, sample.usual, meaning, columns.annotators)
            except InputError:
                continue
            readings[unit] = quoted(spans, Example(sample.place.text))
        if len(set(readings.values())) == 2:
            return (
                f"The numbers of {name!r} in {Path(file).name} could be characters or tokens: as characters they mark "
                f"{readings['characters']}, as tokens {readings['tokens']}. They are read as {taken}: say which with "
                "numbers=characters or numbers=tokens."
            )
    return (
        f"The numbers of {name!r} in {Path(file).name} are read as {taken}, which cut words in two: say what they "
        "count with numbers=characters or numbers=tokens."
    )


def any_numbers(samples: Sequence[Sample]) -> bool:
    return any(one.numbers for sample in samples for one in sample.annotations)


def quoted(spans: Sequence[Span], example: Example) -> str:
    """The marked words, as they are named in a sentence."""
    second = ("second", "context")
    texts = [(example.pair or "") if span.segment in second and example.pair else example.text for span in spans]
    words = [short(text[span.start : span.end]) for text, span in zip(texts, spans, strict=True)]
    return ", ".join([*words[:3], *(["…"] if len(words) > 3 else [])]) or "nothing"
