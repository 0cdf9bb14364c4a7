"""How training data are named in a report, without anybody's folders, and recognised by their content."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from raison.core.errors import InputError
from raison.core.fingerprint import sha256_of_file
from raison.core.records import Example
from raison.datasets.open import parse_data_spec

__all__ = ["fingerprint_of_data_file", "name_of_data", "name_of_labelled_data", "split_joined_data"]

# the name of a data set or file, or texts in memory
LabelledData: TypeAlias = "str | Path | Sequence[Example]"


def name_of_data(data: object) -> str:
    """What to call the data in a report: no folder of anybody's machine."""
    if not isinstance(data, (str, Path)):
        return "texts in memory"
    return "+".join(name_of_one_data(part) for part in split_joined_data(data))


def name_of_one_data(data: object) -> str:
    name, params = parse_data_spec(str(data))
    inside = ", ".join(f"{key}={value}" for key, value in params.items())
    called = Path(name).name
    if inside:
        called += f"({inside})"
    return called


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
    stripped = [part.strip() for part in parts]
    if not all(stripped):
        raise InputError(
            f"{data!r} names nothing on one side of a +: write it like  wikitext2+imdb."
        )
    return stripped


def fingerprint_of_data_file(data: LabelledData) -> str:
    """The content of a file, so that another one of the same name is not taken for it; nothing of other data."""
    if not isinstance(data, (str, Path)):
        return ""
    place = Path(parse_data_spec(str(data))[0]).expanduser()
    if not place.is_file():
        return ""
    return sha256_of_file(place)[:16]


def name_of_labelled_data(data: LabelledData) -> str:
    """What the data is called; a list of texts in memory is known by its content."""
    if isinstance(data, (str, Path)):
        return name_of_data(data)
    digest = hashlib.sha256()
    for example in data:
        digest.update(example.content().encode())
    return f"texts in memory, {digest.hexdigest()[:16]}"
