"""How training data are named: joined by a plus, and without anybody's folders in a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from raison.core.errors import InputError
from raison.datasets.open import parse_data_spec

__all__ = ["name_of_data", "split_joined_data"]


def name_of_data(data: object) -> str:
    """What to call the data in a report: no folder of anybody's machine."""
    if not isinstance(data, (str, Path)):
        return "texts in memory"
    return "+".join(name_of_one(part) for part in split_joined_data(data))


def name_of_one(data: object) -> str:
    name, params = parse_data_spec(str(data))
    inside = ", ".join(f"{key}={value}" for key, value in params.items())
    return Path(name).name + (f"({inside})" if inside else "")


def split_joined_data(data: object) -> Sequence[object]:
    """The data sets or files of `one+another`; a list of texts, or a file that is called so, is one."""
    if not isinstance(data, str) or Path(data).exists():
        return [data]
    parts, depth = [""], 0
    for char in data:
        depth += (char == "(") - (char == ")")
        if char == "+" and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    if not all(part.strip() for part in parts):
        raise InputError(
            f"{data!r} names nothing on one side of a +: write it like  wikitext2+imdb."
        )
    return [part.strip() for part in parts]
