"""Columns inside other columns, named by dots: `question.stem`, `choices.0.text`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from raison.core import limits

__all__ = ["Missing", "names_in", "reach"]


class Missing(LookupError):
    """A record has no such column."""


def reach(record: Mapping[Any, Any], column: Any) -> Any:
    """What stands in a column, which may have dots in its own name; raises Missing.

    Of a list a number takes one entry, and a name takes that field of every entry. A cell of a table may hold JSON.
    """
    written = str(column)
    for name in (column, written):
        if name in record:
            return record[name]
    if "." not in written:
        raise Missing(written)
    found: Any = record
    for part in written.split("."):
        found = step(found, part)
    return found


def step(found: Any, part: str) -> Any:
    """One step further in."""
    if isinstance(found, str) and found.strip()[:1] in ("{", "["):
        try:
            found = limits.from_json(found)
        except json.JSONDecodeError:
            raise Missing(part) from None
    if isinstance(found, Mapping) and part in found:
        return found[part]
    if isinstance(found, (list, tuple)):
        if part.isdecimal() and int(part) < len(found):
            return found[int(part)]
        if found and not part.isdecimal():
            return [step(each, part) for each in found]
    raise Missing(part)


def names_in(record: Mapping[Any, Any]) -> list[str]:
    """The columns of a record, and one level below them, as a user may write them."""
    names = []
    for name, value in record.items():
        inside = list(value) if isinstance(value, Mapping) else []
        names += [f"{name}.{each}" for each in inside] or [str(name)]
    return names
