"""Files of JSON lines with checksums, packed and read: each line carries its own, so that damage shows.

    {"sum":"9f2c…","line":{…}}        … one for each record
    {"sum":"…","line":{"end":128,"shards":[7]}}

A file without a last line was cut: what was written before the cut is known to be whole, line by line.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from raison.core import limits
from raison.core.errors import InputError
from raison.core.json_record import JsonObject

__all__ = [
    "SCHEMA",
    "CheckedLines",
    "Damage",
    "body_of_line",
    "checksum_of_line",
    "line_with_replaced_surrogates",
    "pack_lines",
    "read_checked_lines",
]

SCHEMA = 1
HEAD, MIDDLE, TAIL = b'{"sum":"', b'","line":', b"}"


def checksum_of_line(body: bytes) -> bytes:
    """Sixteen hexadecimal digits that a damaged line would not have."""
    return b"%08x%08x" % (zlib.crc32(body), zlib.adler32(body))


def line_with_replaced_surrogates(text: str) -> str:
    """Text that others can read: half of a surrogate pair, which JSON allows and nothing else does, is replaced."""
    return text.encode("utf-8", "replace").decode()


def pack_lines(records: Iterable[JsonObject], shards: list[int]) -> bytes:
    """The bytes of a file: records in order, and the last line."""
    packed = [checked_line(record) for record in records]
    last = checked_line({"end": len(packed), "shards": shards, "schema": SCHEMA})
    return b"".join([*packed, last])


def checked_line(record: JsonObject) -> bytes:
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    body = text.encode("utf-8", "surrogatepass")
    return HEAD + checksum_of_line(body) + MIDDLE + body + TAIL + b"\n"


@dataclass(frozen=True)
class Damage:
    """What is wrong with a file, and where."""

    file: str
    line: int
    what: str
    torn: bool = False  # only its end is missing: what stands before is whole

    def __str__(self) -> str:
        return f"line {self.line} of {self.file!r} {self.what}"


@dataclass
class CheckedLines:
    """A file that was read: its records, and what is wrong with it."""

    file: str
    bodies: list[bytes] = field(default_factory=list)  # of whole lines, without the last
    shards: list[int] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        return not self.damage

    def records(self) -> Iterator[JsonObject]:
        for body in self.bodies:
            yield limits.read_json_text(body)


def body_of_line(line: bytes) -> bytes | None:
    """The body of a whole line; None where it is not whole."""
    start = len(HEAD) + 16 + len(MIDDLE)
    if (
        not line.startswith(HEAD)
        or line[start - len(MIDDLE) : start] != MIDDLE
        or not line.endswith(TAIL)
    ):
        return None
    body = line[start : -len(TAIL)]
    return body if checksum_of_line(body) == line[len(HEAD) : len(HEAD) + 16] else None


def read_checked_lines(data: bytes, file: str) -> CheckedLines:
    """Every line that is whole, and every one that is not."""
    found = CheckedLines(file)
    pieces = data.split(b"\n")
    torn = pieces.pop()  # behind the last end of a line
    end: JsonObject | None = None
    for number, piece in enumerate(pieces, 1):
        body = body_of_line(piece)
        if body is None:
            found.damage.append(Damage(file, number, "is damaged: its checksum does not fit"))
            continue
        if end is not None:
            found.damage.append(Damage(file, number, "stands behind the end of the file"))
            continue
        if body.startswith(b'{"end":'):
            end = limits.read_json_text(body)
            check_schema_of_lines(end, file)
        else:
            found.bodies.append(body)

    behind = len(pieces) + 1
    if torn:
        found.damage.append(
            Damage(file, behind, "is torn: the file was cut here", torn=end is None)
        )
    elif end is None:
        found.damage.append(Damage(file, behind, "is missing: the file was cut here", torn=True))
    if end is None:
        return found

    found.shards = list(end["shards"])
    if end["end"] != len(found.bodies) and not found.damage:
        found.damage.append(
            Damage(
                file, len(pieces), f"says {end['end']} records, and there are {len(found.bodies)}"
            )
        )
    return found


def check_schema_of_lines(end: JsonObject, file: str) -> None:
    if end.get("schema", 0) > SCHEMA:
        raise InputError(
            f"{file!r} was written by a newer raison (schema {end['schema']}, and this one knows {SCHEMA}): update "
            "raison to read it."
        )
