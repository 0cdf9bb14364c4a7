"""Lines of numbers, one for each model, in a file that recipes write and experiments read.

The lines are few enough to be kept with the project, so that a page can be written again without a day of training.
"""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path

from raison.core import limits
from raison.core.errors import InputError
from raison.core.json_record import JsonObject

__all__ = ["LINES", "add_recipe_line", "read_recipe_lines"]

LINES = "numbers.jsonl"  # in the folder that a recipe fills

Line = JsonObject  # JSON with at least data, name and seed


def add_recipe_line(folder: Path, line: Line) -> None:
    """Write a line at once, so that parts of a recipe can be run side by side; half a line before it goes away."""
    with (folder / LINES).open("ab+", buffering=0) as file:  # unbuffered: one write
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        if size and file.read(1) != b"\n":  # somebody pulled the plug
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)

        encoded = f"{json.dumps(line)}\n".encode()
        try:
            is_whole = file.write(encoded) == len(encoded)
        except OSError:
            is_whole = False
        if not is_whole:  # what was written of it goes away with the next line
            raise InputError(
                f"A line can't be written to {file.name!r}: make room, and give the command again."
            )


def read_recipe_lines(place: Path) -> dict[tuple[str, str], dict[int, Line]]:
    """(data, kind of model) -> seed -> its line; `place` is the file, which may be packed (.xz), or its folder."""
    file = place / LINES if place.is_dir() else place
    if not file.is_file():
        return {}
    lines: dict[tuple[str, str], dict[int, Line]] = {}
    for text in text_of_lines_file(file).split("\n")[
        :-1
    ]:  # what has no end was being written: made again
        try:
            line = limits.read_json_text(text)
            seeds = lines.setdefault((line["data"], line["name"]), {})
            seeds[line["seed"]] = line
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{str(file)!r} has a damaged line: {text[:60]!r}.") from None
    return lines


def text_of_lines_file(file: Path) -> str:
    """The text of a file, which may be packed."""
    try:
        stored = file.read_bytes()
        if file.suffix == ".xz":
            stored = lzma.decompress(stored)
        return stored.decode("utf-8")
    except (lzma.LZMAError, UnicodeDecodeError):
        raise InputError(
            f"{str(file)!r} is damaged: it can't be read as lines of numbers."
        ) from None
