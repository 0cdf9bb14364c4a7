"""The texts of a run, dealt into shards: read once, kept on the disk, so that memory does not grow with the corpus.

Texts of a window are sorted by length, so that those that are explained together are of like length; a text that stands
there twice is planned once. The header is written last: where it is, the plan is whole.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from raison.core import limits, progress
from raison.core.errors import InputError
from raison.core.records import Example
from raison.core.units import group
from raison.datasets.loading import ExampleSource
from raison.datasets.open import open_source
from raison.metrics.base import gold_share
from raison.runs import lines
from raison.runs.spec import RunSpec
from raison.runs.storage import Place
from raison.studies.evaluation_data import example_with_target
from raison.studies.method_lists import metric_list

__all__ = ["Header", "Planned", "Shard", "fingerprint_of", "header_of", "make_plan", "shard_of"]

WINDOW = 4096  # texts that are sorted by length together
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


@dataclass(frozen=True)
class Planned:
    """One text of a shard."""

    index: int  # in the corpus, from 0
    tokens: int
    example: Example


@dataclass(frozen=True)
class Shard:
    """Texts that are done together or not at all; `chunks` are explained in one go."""

    number: int
    texts: tuple[Planned, ...]
    chunks: tuple[tuple[int, ...], ...]  # places in `texts`


def name_of(number: int) -> str:
    return f"plan/{number:06d}.jsonl"


def make_plan(place: Place, spec: RunSpec, model: Any, data_dir: Any = None) -> Header:
    """Read the corpus once and write its shards."""
    source = open_source(spec.data, spec.split, data_dir)
    found = Planner(place, spec, model)
    with tempfile.TemporaryDirectory() as scratch, Known(Path(scratch) / "known.db") as known:
        window: list[Planned] = []
        for index, example in enumerate(examples_of(source, spec)):
            content = found.seen(example)
            if first := known.first(example, index, content):
                found.twice(example, first)
                continue
            window.append(found.counted(index, example))
            if len(window) == WINDOW:
                found.deal(window)
                window = []
            if index % 1000 == 999:
                progress.report(index + 1, 0, "texts planned")
        found.deal(window)
        found.flush()
    if not found.texts:
        raise InputError(f"There is no text in {spec.data}: name data that has some.")
    header = Header(
        found.number, found.texts, found.tokens, found.copies, found.cut, len(source.blank.broken), source.blank.name,
        source.blank.split, source.blank.task, found.gold_share(), tuple(found.sizes),
        tuple(found.counts), found.fingerprint.hexdigest(),
    )  # fmt: skip
    if found.same:
        place.put(SAME, lines.packed(found.same, []))
    place.put(HEADER, header_bytes(asdict(header)))
    return header


def examples_of(source: ExampleSource, spec: RunSpec) -> Iterator[Example]:
    """The texts that a run is about, each with an id and with the target that is to be explained."""
    for index, row in enumerate(source.stream(spec.limit, spec.skip_broken)):
        example = row.value if row.value.id else replace(row.value, id=str(index))
        yield example if spec.target == "all" else example_with_target(example, spec.target, spec.data)


def content_of(example: Example) -> str:
    """A hash of what a text is, whatever it is called."""
    return replace(example, id="", meta={}).content()


def line_of(example: Example, content: str) -> bytes:
    """What the fingerprint of all texts takes from one."""
    return f"{content} {example.id}\n".encode("utf-8", "surrogatepass")


def fingerprint_of(spec: RunSpec, data_dir: Any = None) -> str:
    """The fingerprint that a plan of this spec would have."""
    found = hashlib.blake2b(digest_size=16)
    for example in examples_of(open_source(spec.data, spec.split, data_dir), spec):
        found.update(line_of(example, content_of(example)))
    return found.hexdigest()


def header_bytes(told: dict[str, Any]) -> bytes:
    """A header with its checksum, so that a changed number shows."""
    body = json.dumps(told, ensure_ascii=False, sort_keys=True)
    summed = {**told, "sum": lines.checksum(body.encode("utf-8", "surrogatepass")).decode()}
    return (json.dumps(summed, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


class Known:
    """Texts that were seen, on the disk: a hash for each."""

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self) -> Known:
        self.base = sqlite3.connect(self.path)
        self.base.execute("pragma journal_mode = off")
        self.base.execute("pragma synchronous = off")
        self.base.execute("create table seen (hash blob primary key, name text) without rowid")
        return self

    def __exit__(self, *_: Any) -> None:
        self.base.close()

    def first(self, example: Example, index: int, content: str) -> str:
        """The id of an earlier text of the same content; "" where this is the first."""
        row = self.base.execute("select name from seen where hash = ?", (bytes.fromhex(content),)).fetchone()
        if row is not None:
            return str(row[0])
        name = lines.plain(example.id or str(index))
        self.base.execute("insert into seen values (?, ?)", (bytes.fromhex(content), name))
        return ""


class Planner:
    """Deals texts into shards and counts them."""

    def __init__(self, place: Place, spec: RunSpec, model: Any):
        self.place, self.spec, self.model = place, spec, model
        self.gold = bool(spec.metrics) and any("gold" in each.needs for each in metric_list(spec.metrics))
        self.number = self.texts = self.tokens = self.copies = self.cut = 0
        self.sizes: list[int] = []
        self.counts: list[int] = []
        self.same: list[dict[str, Any]] = []
        self.shares = [0.0, 0]
        self.waiting: list[Planned] = []
        self.held = 0  # tokens of those
        self.fingerprint = hashlib.blake2b(digest_size=16)

    def seen(self, example: Example) -> str:
        """The content of a text, which goes into the fingerprint of all."""
        content = content_of(example)
        self.fingerprint.update(line_of(example, content))
        return content

    def counted(self, index: int, example: Example) -> Planned:
        try:
            (encoding,) = self.model.encode([example], truncate=True)
        except InputError:  # it is recorded as failed when its turn comes
            return Planned(index, max(1, len(example.text) // 4), example)
        self.cut += bool(encoding.truncated)
        if example.gold and self.gold:
            share = gold_share(encoding, group(encoding, self.spec.units), example)
            if share is not None:
                self.shares[0] += share
                self.shares[1] += 1
        return Planned(index, len(encoding), example)

    def gold_share(self) -> float | None:
        return self.shares[0] / self.shares[1] if self.shares[1] else None

    def twice(self, example: Example, first: str) -> None:
        self.copies += 1
        self.same.append({"id": example.id, "of": first})

    def deal(self, window: list[Planned]) -> None:
        """Texts of like length into shards of about the asked size."""
        for text in sorted(window, key=lambda text: (-text.tokens, text.index)):
            if self.waiting and self.held + text.tokens > self.spec.shard_tokens:
                self.flush()
            self.waiting.append(text)
            self.held += text.tokens

    def flush(self) -> None:
        if not self.waiting:
            return
        chunks = chunked(self.waiting, self.spec.chunk_tokens)
        rows: list[dict[str, Any]] = [{"chunks": [list(chunk) for chunk in chunks]}]
        rows += [{"index": t.index, "tokens": t.tokens, "example": t.example.to_dict()} for t in self.waiting]
        self.place.put(name_of(self.number), lines.packed(rows, [self.number]))
        self.sizes.append(sum(text.tokens for text in self.waiting))
        self.tokens += self.sizes[-1]
        self.texts += len(self.waiting)
        self.counts.append(len(self.waiting))
        self.number += 1
        self.waiting, self.held = [], 0


def chunked(texts: list[Planned], most: int) -> list[tuple[int, ...]]:
    """Neighbours that together have at most so many tokens."""
    found: list[tuple[int, ...]] = []
    now: list[int] = []
    size = 0
    for place, text in enumerate(texts):
        if now and size + text.tokens > most:
            found.append(tuple(now))
            now, size = [], 0
        now.append(place)
        size += text.tokens
    return [*found, tuple(now)] if now else found


def header_of(place: Place) -> Header | None:
    """The header of a plan that is whole; None where there is none."""
    data = place.get(HEADER)
    if data is None:
        return None
    try:
        given = limits.from_json(data)
        if "sum" in given and header_bytes({k: v for k, v in given.items() if k != "sum"}) != data:
            raise ValueError("a checksum that does not fit")
        given.pop("sum", None)
        found = Header(**{**given, "sizes": tuple(given["sizes"]), "counts": tuple(given["counts"])})
        if not len(found.sizes) == len(found.counts) == found.shards or sum(found.counts) != found.texts:
            raise ValueError("numbers that do not fit together")
        return found
    except (ValueError, TypeError, KeyError):
        raise InputError(f"The plan of {place} is damaged ({HEADER}): start the run anew in another folder.") from None


def shard_of(place: Place, number: int) -> Shard:
    """The texts of a shard."""
    data = place.get(name_of(number))
    found = lines.read(data or b"", name_of(number))
    if data is None or not found.whole or found.shards != [number]:
        what = "is missing" if data is None else str(found.damage[0]) if found.damage else "is another shard's"
        raise InputError(f"The plan of {place} is damaged ({what}): start the run anew in another folder.")
    rows = found.records()
    chunks = tuple(tuple(chunk) for chunk in next(rows)["chunks"])
    texts = tuple(Planned(row["index"], row["tokens"], Example.from_dict(row["example"])) for row in rows)
    return Shard(number, texts, chunks)


def copies_of(place: Place) -> Iterator[dict[str, Any]]:
    """Texts that stand there more than once, and the id of the first."""
    data = place.get(SAME)
    if data is not None:
        yield from lines.read(data, SAME).records()
