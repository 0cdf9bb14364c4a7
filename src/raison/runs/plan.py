"""The plan of a run as files: its texts, dealt into shards, and a header that is written last.

Where the header is, the plan is whole.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from raison.core import limits
from raison.core.errors import InputError
from raison.core.json_record import JsonObject
from raison.core.records import Example
from raison.runs import checked_lines
from raison.runs.storage import Place

__all__ = [
    "HEADER",
    "SAME",
    "Header",
    "PlannedText",
    "Shard",
    "plan_file",
    "plan_header_bytes",
    "plan_header_of",
    "planned_header",
    "shard_of",
    "write_plan_header",
    "write_shard",
]

HEADER = "plan/header.json"
SAME = "plan/same.jsonl"


@dataclass(frozen=True)
class Header:
    """What a plan holds."""

    shards: int
    texts: int  # to be explained
    tokens: int
    twice: int  # texts that stand there more than once
    cut: int  # texts that are longer than the model reads
    broken: int
    data: str
    split: str
    task: str
    gold_share: float | None  # of gold units in a text, on average
    sizes: tuple[int, ...]  # tokens of each shard
    counts: tuple[int, ...]  # texts of each shard
    fingerprint: str = ""  # of all texts in order, with their ids; "": of a run that was planned before it was kept

    def texts_in(self, shards: set[int]) -> int:
        """How many texts some shards hold."""
        return sum(self.counts[number] for number in shards)

    @classmethod
    def from_json(cls, data: JsonObject) -> Header:
        """The header of a file; `ValueError` where its numbers do not fit together."""
        header = cls(**{**data, "sizes": tuple(data["sizes"]), "counts": tuple(data["counts"])})
        if (
            not len(header.sizes) == len(header.counts) == header.shards
            or sum(header.counts) != header.texts
        ):
            raise ValueError("numbers that do not fit together")
        return header


@dataclass(frozen=True)
class PlannedText:
    """One text of a shard."""

    index: int  # in the corpus, from 0
    tokens: int
    example: Example

    def to_json(self) -> JsonObject:
        return {"index": self.index, "tokens": self.tokens, "example": self.example.to_dict()}

    @classmethod
    def from_json(cls, data: JsonObject) -> PlannedText:
        return cls(data["index"], data["tokens"], Example.from_dict(data["example"]))


@dataclass(frozen=True)
class Shard:
    """Texts that are done together or not at all; `chunks` are explained in one go."""

    number: int
    texts: tuple[PlannedText, ...]
    chunks: tuple[tuple[int, ...], ...]  # places in `texts`


def plan_file(number: int) -> str:
    """The file that plans a shard."""
    return f"plan/{number:06d}.jsonl"


def write_shard(place: Place, shard: Shard) -> None:
    """Write the texts of a shard."""
    chunks = [list(chunk) for chunk in shard.chunks]
    texts = [text.to_json() for text in shard.texts]
    place.put(
        plan_file(shard.number),
        checked_lines.pack_lines([{"chunks": chunks}, *texts], [shard.number]),
    )


def write_plan_header(place: Place, header: Header) -> None:
    """Write the header, after which the plan is whole."""
    place.put(HEADER, plan_header_bytes(asdict(header)))


def plan_header_bytes(header: JsonObject) -> bytes:
    """A header with its checksum, so that a changed number shows."""
    body = json.dumps(header, ensure_ascii=False, sort_keys=True)
    checksum = checked_lines.checksum_of_line(body.encode("utf-8", "surrogatepass")).decode()
    text = json.dumps({**header, "sum": checksum}, ensure_ascii=False)
    return (text + "\n").encode("utf-8", "surrogatepass")


def plan_header_of(place: Place) -> Header | None:
    """The header of a plan that is whole; None where there is none."""
    data = place.get(HEADER)
    if data is None:
        return None
    try:
        fields = limits.read_json_text(data)
        checksum = fields.pop("sum", None)
        if checksum is not None and plan_header_bytes(fields) != data:
            raise ValueError("a checksum that does not fit")
        return Header.from_json(fields)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(
            f"The plan of {place} is damaged ({HEADER}): start the run anew in another folder."
        ) from None


def planned_header(place: Place) -> Header:
    """The header of a run whose plan has been made."""
    header = plan_header_of(place)
    if header is None:
        raise InputError(f"{str(place)!r} is not planned yet: run it first.")
    return header


def shard_of(place: Place, number: int) -> Shard:
    """The texts of a shard."""
    name = plan_file(number)
    data = place.get(name)
    if data is None:
        raise damaged_plan(place, "is missing")
    read = checked_lines.read_checked_lines(data, name)
    if read.damage:
        raise damaged_plan(place, str(read.damage[0]))
    if read.shards != [number]:
        raise damaged_plan(place, "is another shard's")

    rows = read.records()
    chunks = next(rows)["chunks"]
    return Shard(
        number=number,
        texts=tuple(PlannedText.from_json(row) for row in rows),
        chunks=tuple(tuple(chunk) for chunk in chunks),
    )


def damaged_plan(place: Place, reason: str) -> InputError:
    return InputError(
        f"The plan of {place} is damaged ({reason}): start the run anew in another folder."
    )
