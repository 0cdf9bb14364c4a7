"""JSON lines: an object in each line; or one list of objects."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, TypeVar

from raison.core import limits
from raison.core.errors import InputError
from raison.datasets.dataset_rows import Broken, Row, Rows, filter_rows, map_rows
from raison.datasets.text_files import read_lines

__all__ = [
    "Json",
    "json_object",
    "read_json_lines",
    "read_json_list",
    "read_json_text",
    "required_json_field",
]

Json = dict[str, Any]  # an object in JSON, of which nothing is known yet
K = TypeVar("K")

BLANK = re.compile(r"\s*")


def read_json_lines(path: Path, *, other: str = "") -> Rows[Json]:
    """The objects of a file with one in each line; empty lines are none."""
    full = filter_rows(read_lines(path, other=other), lambda line: bool(line.strip()))
    return map_rows(full, parse_object)


def read_json_list(path: Path, *, other: str = "") -> Rows[Json]:
    """The objects of a file that holds one list of them; `line` counts them."""
    text = read_json_text(path, other=other)
    if isinstance(text, Broken):
        yield text
        return
    yield from map_rows(values_of_list(text.file, text.value), lambda row: json_object(row.value))


def values_of_list(file: str, text: str) -> Rows[object]:
    """The values of a list in JSON, one by one; what stands behind a mistake can't be read."""
    decoder = json.JSONDecoder()
    number = 0
    place = skip_blank_in_json(text, text.index("[") + 1)
    more = not text.startswith("]", place)

    while more:
        number += 1
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            yield Broken(file, number, f"it is not JSON ({error})")
            return
        yield Row(file, number, value)

        place = skip_blank_in_json(text, place)
        more = text.startswith(",", place)
        if more:
            place = skip_blank_in_json(text, place + 1)

    closed = text.startswith("]", place)
    if not closed or skip_blank_in_json(text, place + 1) < len(text):
        yield Broken(file, number, "the list of objects is cut or goes on in a wrong way behind it")


def skip_blank_in_json(text: str, place: int) -> int:
    """The next place that is no white space."""
    match = BLANK.match(text, place)
    if match is None:
        return place
    return match.end()


def read_json_text(path: Path, *, other: str = "") -> Row[str] | Broken:
    """A JSON file as one text, unless it is too large."""
    parts: list[str] = []
    size = 0
    for row in read_lines(path, other=other, longest=limits.FILE):
        if isinstance(row, Broken):  # a JSON file without one of its lines is no JSON file
            return row

        parts.append(row.value)
        size += len(row.value)
        if size > limits.FILE:
            most = limits.format_limit_in_megabytes(limits.FILE)
            reason = f"it is JSON of more than {most}: write one object in each line (.jsonl)"
            return Broken(str(path), row.line, reason)
    return Row(str(path), 1, "\n".join(parts))


def parse_object(row: Row[str]) -> Json:
    """The object of a line."""
    try:
        value = limits.read_json_text(row.value)
    except json.JSONDecodeError as error:
        raise InputError(f"it is not JSON ({error}).") from None
    return json_object(value)


def json_object(value: object) -> Json:
    """The value, which must be an object."""
    if not isinstance(value, dict):
        raise InputError(f"it is not an object with fields but {type(value).__name__}.")
    return value


def required_json_field(record: object, name: str, kind: type[K]) -> K:
    """A field that must be there and of a kind."""
    fields = json_object(record)
    if name not in fields:
        known = ", ".join(map(str, fields)) or "none"
        raise InputError(f"there is no field {name!r}; it has {known}.")

    value = fields[name]
    if not isinstance(value, kind):
        found = type(value).__name__
        raise InputError(f"the field {name!r} is {found}, which it must not be.")
    return value
