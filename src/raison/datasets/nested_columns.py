"""Nested columns, columns inside other columns, named by dots: `question.stem`, `choices.0.text`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from raison.core import limits

__all__ = ["MissingColumn", "RawRecord", "column_names", "find_nested_cell"]

RawRecord = Mapping[Any, Any]  # a record of a user's file: its columns are named, or numbered


class MissingColumn(LookupError):
    """A record has no such column."""


def find_nested_cell(record: RawRecord, column: object) -> object:
    """What stands in a column, which may have dots in its own name; raises MissingColumn.

    Of a list a number takes one entry, and a name takes that field of every entry. A cell of a table may hold JSON.
    """
    written = str(column)
    for name in (column, written):
        if name in record:
            return record[name]
    if "." not in written:
        raise MissingColumn(written)

    value: object = record
    for part in written.split("."):
        value = step_into_nested_column(value, part)
    return value


def step_into_nested_column(value: object, part: str) -> object:
    """What one part of a column's name finds in a value."""
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        try:
            value = limits.read_json_text(value)
        except json.JSONDecodeError:
            raise MissingColumn(part) from None

    if isinstance(value, Mapping) and part in value:
        return value[part]
    if isinstance(value, (list, tuple)):
        if part.isdecimal() and int(part) < len(value):
            return value[int(part)]
        if value and not part.isdecimal():
            return [step_into_nested_column(entry, part) for entry in value]
    raise MissingColumn(part)


def column_names(record: RawRecord) -> list[str]:
    """The columns of a record, and one level below them, as a user may write them."""
    names = []
    for name, value in record.items():
        if isinstance(value, Mapping) and value:
            names += [f"{name}.{inner}" for inner in value]
        else:
            names.append(str(name))
    return names
