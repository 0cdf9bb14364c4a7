"""JSON lines: an object in each line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from raison.datasets.rows import Row, Rows, each, lines
from raison.errors import InputError

__all__ = ["objects", "value_of"]


def objects(path: Path, *, other: str = "") -> Rows[dict[str, Any]]:
    """The objects of a file; empty lines are none."""
    full = (row for row in lines(path, other=other) if not isinstance(row, Row) or row.value.strip())
    return each(full, parsed)


def parsed(row: Row[str]) -> dict[str, Any]:
    try:
        found = json.loads(row.value)
    except (json.JSONDecodeError, RecursionError) as error:
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
