"""Numbers of many models, a line of a file for each, as recipes write them.

The lines are few enough to be kept with the project, so that a page can be written again without a day of training.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

from raison.errors import InputError

__all__ = ["LINES", "add_line", "read_lines"]

LINES = "numbers.jsonl"  # in the folder that a recipe fills


def add_line(folder: Path, line: dict[str, Any]) -> None:
    """Write a line at once, so that parts of a recipe can be run side by side."""
    with (folder / LINES).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def read_lines(place: Path) -> dict[tuple[str, str], dict[int, dict[str, Any]]]:
    """(data, kind of model) -> seed -> its line; `place` is the file, which may be packed (.xz), or its folder."""
    file = place / LINES if place.is_dir() else place
    if not file.is_file():
        return {}
    found: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    try:
        stored = file.read_bytes()
        text = (lzma.decompress(stored) if file.suffix == ".xz" else stored).decode("utf-8")
    except (lzma.LZMAError, UnicodeDecodeError):
        raise InputError(f"{str(file)!r} is damaged: it can't be read as lines of numbers.") from None
    for line in text.split("\n")[:-1]:  # what has no end was being written: made again
        try:
            told = json.loads(line)
            found.setdefault((told["data"], told["name"]), {})[told["seed"]] = told
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{str(file)!r} has a damaged line: {line[:60]!r}.") from None
    return found
