"""The plan of a run: the corpus is read once, fingerprinted, and dealt into shards and chunks on the disk; memory
does not grow with it.

Texts of a window are sorted by length, so that those that are explained together are of like length; a text that stands
there twice is planned once.
"""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from raison.core import progress
from raison.core.errors import InputError
from raison.core.json_record import JsonObject
from raison.core.records import Example
from raison.core.units import group_tokens
from raison.datasets.loading import ExampleSource
from raison.datasets.open import open_source
from raison.metrics.base import gold_share
from raison.models.protocol import Model
from raison.runs import checked_lines
from raison.runs.plan import SAME, Header, PlannedText, Shard, write_plan_header, write_shard
from raison.runs.run_spec import RunSpec
from raison.runs.storage import Place
from raison.studies.evaluation_data import example_with_target
from raison.studies.method_lists import metric_list

__all__ = ["ShardDealer", "chunks_of_corpus", "fingerprint_of_corpus", "make_plan"]

WINDOW = 4096  # texts that are sorted by length together
REPORT_EVERY = 1000  # texts
CHARACTERS_PER_TOKEN = 4  # about, of a text that could not be read


def make_plan(
    place: Place, spec: RunSpec, model: Model, data_dir: str | Path | None = None
) -> Header:
    """Read the corpus once and write its shards."""
    source = open_source(spec.data, spec.split, data_dir)
    reader = CorpusReader(spec, model)
    dealer = ShardDealer(place, spec)
    with tempfile.TemporaryDirectory() as scratch, SeenTexts(Path(scratch) / "seen.db") as seen:
        window: list[PlannedText] = []
        for index, example in enumerate(examples_of_corpus(source, spec)):
            text = reader.read(index, example, seen)
            if text is not None:
                window.append(text)
            if len(window) == WINDOW:
                dealer.deal(window)
                window = []
            if (index + 1) % REPORT_EVERY == 0:
                progress.report(index + 1, 0, "texts planned")
        dealer.deal(window)
        dealer.end_shard()
    if not dealer.counts:
        raise InputError(f"There is no text in {spec.data}: name data that has some.")

    header = Header(
        shards=len(dealer.sizes),
        texts=sum(dealer.counts),
        tokens=sum(dealer.sizes),
        twice=len(reader.copies),
        cut=reader.cut,
        broken=len(source.blank.broken),
        data=source.blank.name,
        split=source.blank.split,
        task=source.blank.task,
        gold_share=reader.mean_gold_share(),
        sizes=tuple(dealer.sizes),
        counts=tuple(dealer.counts),
        fingerprint=reader.fingerprint.hexdigest(),
    )
    if reader.copies:
        place.put(SAME, checked_lines.pack_lines(reader.copies, []))
    write_plan_header(place, header)
    return header


# -- what is planned ------------------------------------------------------------------------------------------


def examples_of_corpus(source: ExampleSource, spec: RunSpec) -> Iterator[Example]:
    """The texts that a run is about, each with an id and with the target that is to be explained."""
    for index, row in enumerate(source.stream(spec.limit, spec.skip_broken)):
        example = row.value if row.value.id else replace(row.value, id=str(index))
        yield (
            example
            if spec.target == "all"
            else example_with_target(example, spec.target, spec.data)
        )


def hash_of_corpus_example(example: Example) -> str:
    """A hash of what a text is, whatever it is called."""
    return replace(example, id="", meta={}).content()


def fingerprint_of_corpus(spec: RunSpec, data_dir: str | Path | None = None) -> str:
    """The fingerprint that a plan of this spec would have."""
    fingerprint = new_corpus_fingerprint()
    for example in examples_of_corpus(open_source(spec.data, spec.split, data_dir), spec):
        fingerprint.update(corpus_fingerprint_line(example, hash_of_corpus_example(example)))
    return fingerprint.hexdigest()


def new_corpus_fingerprint() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=16)


def corpus_fingerprint_line(example: Example, content: str) -> bytes:
    """What the fingerprint of all texts takes from one."""
    return f"{content} {example.id}\n".encode("utf-8", "surrogatepass")


class SeenTexts:
    """Texts that were seen, on the disk: a hash for each."""

    def __init__(self, path: Path):
        self.base = sqlite3.connect(path)
        self.base.execute("pragma journal_mode = off")
        self.base.execute("pragma synchronous = off")
        self.base.execute("create table seen (hash blob primary key, name text) without rowid")

    def __enter__(self) -> SeenTexts:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.base.close()

    def first_of(self, content: str, name: str) -> str:
        """The id of an earlier text of the same content; "" where this one, called `name`, is the first."""
        key = bytes.fromhex(content)
        row = self.base.execute("select name from seen where hash = ?", (key,)).fetchone()
        if row is not None:
            return str(row[0])
        self.base.execute(
            "insert into seen values (?, ?)",
            (key, checked_lines.line_with_replaced_surrogates(name)),
        )
        return ""


class CorpusReader:
    """Reads the texts of a corpus one by one, counts their tokens, and finds copies."""

    def __init__(self, spec: RunSpec, model: Model):
        self.spec = spec
        self.model = model
        self.needs_gold = (
            any("gold" in metric.needs for metric in metric_list(spec.metrics))
            if spec.metrics
            else False
        )
        self.copies: list[JsonObject] = []
        self.cut = 0
        self.gold_shares_sum = 0.0
        self.gold_shares_count = 0
        self.fingerprint = new_corpus_fingerprint()

    def read(self, index: int, example: Example, seen: SeenTexts) -> PlannedText | None:
        """A text with the number of its tokens; None for one that was planned already."""
        content = hash_of_corpus_example(example)
        self.fingerprint.update(corpus_fingerprint_line(example, content))
        first = seen.first_of(content, example.id or str(index))
        if first:
            self.copies.append({"id": example.id, "of": first})
            return None
        return PlannedText(index, self.count_tokens(example), example)

    def count_tokens(self, example: Example) -> int:
        """How many tokens a text has; about, where it can't be read: it is recorded as failed when its turn comes."""
        try:
            (encoding,) = self.model.encode([example], truncate=True)
        except InputError:
            return max(1, len(example.text) // CHARACTERS_PER_TOKEN)
        self.cut += bool(encoding.truncated)
        if example.gold and self.needs_gold:
            share = gold_share(encoding, group_tokens(encoding, self.spec.units), example)
            if share is not None:
                self.gold_shares_sum += share
                self.gold_shares_count += 1
        return len(encoding)

    def mean_gold_share(self) -> float | None:
        return self.gold_shares_sum / self.gold_shares_count if self.gold_shares_count else None


# -- how it is dealt ------------------------------------------------------------------------------------------


class ShardDealer:
    """Deals texts into shards, which it writes."""

    def __init__(self, place: Place, spec: RunSpec):
        self.place = place
        self.spec = spec
        self.sizes: list[int] = []  # tokens of each shard
        self.counts: list[int] = []  # texts of each shard
        self.waiting: list[PlannedText] = []
        self.waiting_tokens = 0

    def deal(self, window: Sequence[PlannedText]) -> None:
        """Texts of like length into shards of about the asked size."""
        for text in sorted(window, key=lambda text: (-text.tokens, text.index)):
            if self.waiting and self.waiting_tokens + text.tokens > self.spec.shard_tokens:
                self.end_shard()
            self.waiting.append(text)
            self.waiting_tokens += text.tokens

    def end_shard(self) -> None:
        """Write what is waiting as a shard."""
        if not self.waiting:
            return
        chunks = chunks_of_corpus(self.waiting, self.spec.chunk_tokens)
        write_shard(self.place, Shard(len(self.sizes), tuple(self.waiting), tuple(chunks)))
        self.sizes.append(self.waiting_tokens)
        self.counts.append(len(self.waiting))
        self.waiting, self.waiting_tokens = [], 0


def chunks_of_corpus(texts: Sequence[PlannedText], most: int) -> list[tuple[int, ...]]:
    """Neighbours that together have at most so many tokens."""
    chunks: list[tuple[int, ...]] = []
    current: list[int] = []
    size = 0
    for place, text in enumerate(texts):
        if current and size + text.tokens > most:
            chunks.append(tuple(current))
            current, size = [], 0
        current.append(place)
        size += text.tokens
    return [*chunks, tuple(current)] if current else chunks
