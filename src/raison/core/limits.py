"""Limits on how much of a file, a text or JSON is read at once.

Corpora are read row by row and may be of any size. What has to lie in memory whole (a line, a text, a JSON file, a file
in an archive) has a limit, so that a wrong or a hostile file is one sentence and not a machine that swaps. A limit
counts bytes as they come out of a packed file: what the file says about its own size is not believed.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

from raison.core.errors import InputError, TooLong

__all__ = [
    "CUT",
    "FILE",
    "LINE",
    "SPEC",
    "TEXT",
    "check_text_size",
    "format_limit_in_megabytes",
    "read_at_most",
    "read_json_text",
]

SPEC = 2**20  # a TOML file that says what to do
# one text, or a pair, that is cut into tokens: each takes some 300 bytes while that is done
CUT = 2**22
TEXT = 2**24  # one text, from a file or from standard input
LINE = 2**26  # one record of a file with a record in each line
FILE = 2**29  # a JSON file, or one file in an archive


def format_limit_in_megabytes(most: int) -> str:
    """A number of bytes in words, such as `4 MB`."""
    return f"{most >> 20} MB"


def read_json_text(text: str | bytes) -> Any:
    """The value of a JSON text that somebody brought.

    What Python's parser has other exceptions for (values nested too deep, numbers too long, bytes that are no UTF-8) is
    a `JSONDecodeError` as well.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise json.JSONDecodeError("it is nested too deep", "", 0) from None
    except ValueError as error:
        raise json.JSONDecodeError(str(error), "", 0) from None


class ByteStream(Protocol):
    """What bytes are read from: a file, a member of an archive, a response."""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes."""


def read_at_most(stream: ByteStream, most: int, name: str) -> bytes:
    """All that is in a stream, unless it is too much."""
    content = stream.read(most + 1)
    if len(content) > most:
        limit = format_limit_in_megabytes(most)
        raise InputError(
            f"{name} is larger than {limit}, the most that is read at once: give a part of it."
        )
    return content


def check_text_size(size: int) -> None:
    """Refuse a text of so many bytes before it is cut into tokens, which take a hundred times its size."""
    if size > CUT:
        limit = format_limit_in_megabytes(CUT)
        raise TooLong(
            f"The text is larger than {limit}, the most that is cut into tokens at once: give a part of it."
        )
