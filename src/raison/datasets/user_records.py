"""Records of a user's file, read: the first ones are looked at to know what their numbers count."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from raison.core import progress
from raison.core.errors import DataWarning, InputError
from raison.core.records import Example
from raison.datasets.column_mapping import ColumnMapping, WrongColumns
from raison.datasets.dataset_rows import UNEXPECTED, Broken, Row, Rows, map_rows
from raison.datasets.describe_columns import MarkedRecord, describe_columns, describe_doubt
from raison.datasets.nested_columns import RawRecord
from raison.datasets.number_meaning import decide_meaning_of_numbers
from raison.datasets.record_examples import example_of_record, marked_texts_of_record

__all__ = ["ColumnReport", "read_records"]

SAMPLE = 200  # records that are looked at before the first is read


@dataclass
class ColumnReport:
    """What is said about a file, as soon as its first records have been looked at."""

    sentence: str = ""  # which column was taken for what, with an example
    doubts: list[str] = field(default_factory=list)  # what may have been understood wrongly


def read_records(
    rows: Iterator[Row[RawRecord] | Broken],
    columns: ColumnMapping,
    *,
    file: str,
    report: ColumnReport,
) -> Rows[Example]:
    """Examples of records; what their numbers count is decided from the first ones and told in the report."""
    head = list(islice(rows, SAMPLE))
    good = [row for row in head if isinstance(row, Row)]
    marked = marked_records(good, columns)

    samples = []
    for record in marked:
        samples += [(record.text, annotation) for annotation in record.annotations]
    columns = replace(columns, meaning=decide_meaning_of_numbers(samples, columns.numbers))

    example = first_example(good, columns)
    if example is not None:
        report.sentence = describe_columns(
            example=example,
            record=good[0].value,
            columns=columns,
            marked=marked,
            file=file,
        )
        progress.tell(report.sentence)
    if columns.meaning.doubtful:
        doubt = describe_doubt(marked, columns, file)
        report.doubts.append(doubt)
        warnings.warn(doubt, DataWarning, stacklevel=2)

    yield from map_rows(chain(head, rows), lambda row: example_of_record(row, columns))


def marked_records(rows: Iterable[Row[RawRecord]], columns: ColumnMapping) -> list[MarkedRecord]:
    """The records that can be read so far; the others are told later, as broken."""
    records = []
    for row in rows:
        try:
            marked = marked_texts_of_record(row.value, row.file, columns)
        except (InputError, WrongColumns, *UNEXPECTED):
            continue
        text = marked.texts.get(marked.usual)
        if text is not None:
            records.append(MarkedRecord(marked.usual, text, marked.annotations))
    return records


def first_example(rows: Iterable[Row[RawRecord]], columns: ColumnMapping) -> Example | None:
    """The first example with marks, else the first."""
    first = None
    for row in rows:
        try:
            example = example_of_record(row, columns)
        except (InputError, WrongColumns, *UNEXPECTED):
            continue
        if example.gold:
            return example
        first = first or example
    return first
