"""JSON lines: an object in each line; or one list of objects."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from raison.core import limits
from raison.core.errors import InputError
from raison.datasets.rows import Broken, Row, Rows, each, lines

__all__ = ["elements", "objects", "value_of", "whole_text"]


def objects(path: Path, *, other: str = "") -> Rows[dict[str, Any]]:
    """The objects of a file; empty lines are none."""
    full = (row for row in lines(path, other=other) if not isinstance(row, Row) or row.value.strip())
    return each(full, parsed)


def elements(path: Path, *, other: str = "") -> Rows[dict[str, Any]]:
    """The objects of a file that holds one list of them; `line` counts them."""
    text = whole_text(path, other=other)
    if isinstance(text, Broken):
        yield text
        return
    yield from each(values_in(text.file, text.value), checked)


def values_in(file: str, text: str) -> Rows[Any]:
    """The values of a list in JSON, one by one; what stands behind a mistake can't be read."""
    decoder = json.JSONDecoder()
    blank = re.compile(r"\s*")
    place = after(blank, text, text.index("[") + 1)
    number = 0
    sign = text[place : place + 1] if text[place : place + 1] == "]" else ","
    while sign == ",":
        number += 1
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            yield Broken(file, number, f"it is not JSON ({error})")
            return
        yield Row(file, number, value)
        place = after(blank, text, place)
        sign = text[place : place + 1]
        place = after(blank, text, place + 1) if sign == "," else place
    if sign != "]" or after(blank, text, place + 1) < len(text):
        yield Broken(file, number, "the list of objects is cut or goes on in a wrong way behind it")


def after(pattern: re.Pattern[str], text: str, place: int) -> int:
    """Where a pattern ends that matches at a place, perhaps nothing."""
    match = pattern.match(text, place)
    return place if match is None else match.end()


def whole_text(path: Path, *, other: str = "") -> Row[str] | Broken:
    """A JSON file as one text, unless it is too large."""
    parts: list[str] = []
    size = 0
    for row in lines(path, other=other, longest=limits.FILE):
        if isinstance(row, Broken):  # a JSON file without one of its lines is no JSON file
            return row
        parts.append(row.value)
        size += len(row.value)
        if size > limits.FILE:
            told = limits.format_megabytes(limits.FILE)
            return Broken(
                str(path), row.line, f"it is JSON of more than {told}: write one object in each line (.jsonl)"
            )
    return Row(str(path), 1, "\n".join(parts))


def checked(row: Row[Any]) -> dict[str, Any]:
    """An element of the list, which must be an object."""
    if not isinstance(row.value, dict):
        raise InputError(f"it is not an object with fields but {type(row.value).__name__}.")
    return row.value


def parsed(row: Row[str]) -> dict[str, Any]:
    try:
        found = limits.from_json(row.value)
    except json.JSONDecodeError as error:
        raise InputError(f"it is not JSON ({error}).") from None
    if not isinstance(found, dict):
        raise InputError(f"it is not an object with fields but {type(found).__name__}.")
    return found


def value_of(record: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    """A field that must be there and of a kind."""
    if not isinstance(record, dict):
        raise InputError(f"it is not an object with fields but {type(record).__name__}.")
    if name not in record:
        raise InputError(f"there is no field {name!r}; it has {', '.join(map(str, record)) or 'none'}.")
    if not isinstance(record[name], kind):
        raise InputError(f"the field {name!r} is {type(record[name]).__name__}, which it must not be.")
    return record[name]
