"""Reads texts and targets of the command line: arguments, text files, standard input."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from raison.core import limits
from raison.core.errors import InputError

if TYPE_CHECKING:
    from raison.core.records import Example

__all__ = ["example_of_text_options", "read_text_file", "target_of_text_option"]


def example_of_text_options(
    text: str | None, pair: str | None, question: str | None, context: Path | None
) -> Example:
    """The example of the given options; the text itself may come from standard input."""
    from raison.core.records import Example

    if question is not None or context is not None:
        if question is None:
            raise InputError("--context needs a --question.")
        if text == "-" or (text is None and context is None):
            return Example(question, read_standard_input())
        if context is not None and text is not None:
            raise InputError("Give the context once: as TEXT or with --context.")
        if context is not None:
            text = read_text_file(context)
        return Example(question, text)
    if text is None:
        raise InputError("Give a text to explain, or - to read it from standard input.")
    if text == "-":
        text = read_standard_input()
    return Example(text, pair)


def read_standard_input() -> str:
    """Standard input as UTF-8, whatever the locale says."""
    if sys.stdin is None:
        raise InputError(
            "Standard input is closed: pipe a text into it, or give the text as an argument."
        )
    try:
        return limits.read_at_most(sys.stdin.buffer, limits.TEXT, "Standard input").decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("Standard input is not UTF-8 text: re-encode it.") from None


def read_text_file(path: Path, most: int = limits.TEXT) -> str:
    """The text of a file in UTF-8, unless it is too large."""
    try:
        with path.open("rb") as file:
            content = limits.read_at_most(file, most, repr(str(path)))
        return content.decode("utf-8-sig")  # a byte order mark is no text
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}: check the path.") from None
    except UnicodeDecodeError:
        raise InputError(f"{str(path)!r} is not UTF-8 text: re-encode it.") from None


def target_of_text_option(target: str | None) -> int | slice | str | None:
    """`--target 3` counts tokens or classes, `3:6` names a range, `great` a word; quote a number to write it: '"3"'."""
    if target is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}:[0-9]{1,9}", target):
        start, stop = map(int, target.split(":"))
        return slice(start, stop)
    if re.fullmatch(r"-?[0-9]{1,9}", target):  # and not " 3", which is a word that could follow
        return int(target)
    if len(target) > 2 and target[0] == target[-1] == '"':
        return target[1:-1]
    return target
