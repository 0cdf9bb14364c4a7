"""What a data set is: a frozen set of parameters that reads a split into examples."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from raison.core.errors import InputError
from raison.core.records import Example
from raison.core.registry import datasets, suggest
from raison.core.spec import Spec, whole
from raison.datasets.rows import Broken, Row, Rows, in_turn

__all__ = ["SEGMENTS", "Dataset", "Read", "Source", "dataset", "folder_of", "gold_fault", "negative_positive"]

D = TypeVar("D", bound="type[Dataset]")

# names of the texts of an example, as the encodings of a model of that task call them
SEGMENTS: dict[str, tuple[str, ...]] = {
    "classification": ("text",),
    "pair": ("first", "second"),
    "tagging": ("text",),
    "qa": ("question", "context"),
    "causal": ("text",),
    "seq2seq": ("source",),
    "text": ("text",),
}
DEVELOPMENT = ("dev", "val", "valid", "validation")  # what publishers call the same thing
negative_positive = ("negative", "positive")


@dataclass(frozen=True)
class Read:
    """What was read: the examples, and an account of what was not."""

    name: str  # the spec of the data set
    split: str
    task: str  # classification | pair | tagging | qa | causal | seq2seq | text
    labels: tuple[str, ...]  # names in the order of a model's classes; empty where there are no classes
    examples: list[Example]
    broken: list[Broken] = field(default_factory=list)  # left out, only with skip_broken
    mended: dict[str, int] = field(default_factory=dict)  # what was put right in reading -> in how many records
    understood: str = ""  # of a user's file: which column was taken for what, with an example
    doubts: tuple[str, ...] = ()  # what may have been understood wrongly, and how to say it

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)

    @property
    def gold(self) -> bool:
        """Whether any example has a human rationale."""
        return any(example.gold for example in self.examples)


@dataclass(frozen=True)
class Dataset(ABC):
    """Parameters only; the place of the files arrives with the call."""

    name: ClassVar[str]
    task: ClassVar[str]  # what a model that reads it does; one of SEGMENTS
    splits: ClassVar[tuple[str, ...]]  # as the publisher calls them
    folder: ClassVar[str]  # below the data directory
    source: ClassVar[str]  # where it is published
    paper: ClassVar[str] = ""  # who made it
    labels: ClassVar[tuple[str, ...]] = ()  # classes in the order of the publisher's numbers
    labelled: ClassVar[bool] = True  # a record without a label is broken
    gold: ClassVar[bool] = False  # people have marked what matters
    embedded: ClassVar[bool] = False  # the files come with raison
    blocks: ClassVar[bool] = False  # the files hold one class after the other: they are read in turn

    @abstractmethod
    def rows(self, place: Path, split: str) -> Rows[Example]:
        """The examples of a split one by one, from the files in the folder `place`."""

    def spec(self) -> Spec:
        """How to write this data set: its name and what differs from the defaults."""
        params = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return Spec(self.name, params)

    def split(self, wanted: str | None) -> str:
        """The split that is meant; `dev`, `val`, `valid` and `validation` are the same, and `test` is the default."""
        if wanted is None:
            return "test" if "test" in self.splits else self.splits[-1]
        if wanted in self.splits:
            return wanted
        same = [name for name in self.splits if wanted in DEVELOPMENT and name in DEVELOPMENT]
        if not same:
            near = suggest(str(wanted), list(self.splits))
            known = ", ".join(self.splits)
            raise InputError(f"The data set {self.spec()} has no split {wanted!r}.{near} It has: {known}.")
        return same[0]

    def read(
        self,
        split: str | None = None,
        limit: int | None = None,
        skip_broken: bool = False,
        data: str | os.PathLike[str] | None = None,
    ) -> Read:
        """The first `limit` examples of a split; a broken record is an error, or counted with `skip_broken`."""
        return self.source_of(split, data).read(limit, skip_broken)

    def source_of(self, split: str | None = None, data: str | os.PathLike[str] | None = None) -> Source:
        """The rows of a split, not read yet."""
        chosen = self.split(split)
        rows: Iterable[Row[Example] | Broken] = self.rows(folder_of(self, data), chosen)
        if self.blocks:
            rows = in_turn(rows, self.labels)
        return Source(rows, self.fault, self.blank(chosen))

    def blank(self, split: str) -> Read:
        return Read(str(self.spec()), split, self.task, tuple(self.labels), [])

    def fault(self, example: Example) -> str:
        """What is wrong with an example of this data set; nothing, mostly."""
        return label_fault(self, example.label) or gold_fault(self.task, example)


def dataset(name: str) -> Callable[[D], D]:
    """Register a data set under the name that users type."""
    return datasets.named(name)


def folder_of(wanted: Dataset, data: str | os.PathLike[str] | None) -> Path:
    """The folder of a data set below the data directory: the argument, else the variable RAISON_DATA."""
    if wanted.embedded:
        return Path(__file__).parent / "embedded"
    place = data if data is not None else os.environ.get("RAISON_DATA")
    if not place:
        raise InputError(
            f"The data set {wanted.name!r} is read from a folder of your own: set the variable RAISON_DATA to the "
            f"directory that holds {wanted.folder!r}, which is published at {wanted.source}."
        )
    folder = Path(place) / wanted.folder
    if not folder.is_dir():
        raise InputError(
            f"There is no folder {wanted.folder!r} in {str(place)!r}: set RAISON_DATA to the directory that holds it; "
            f"the data set is published at {wanted.source}."
        )
    return folder


@dataclass
class Source:
    """Rows that nobody has read yet, and what their account will say."""

    rows: Iterable[Row[Example] | Broken]
    fault: Callable[[Example], str]
    blank: Read
    finish: Callable[[Read], Read] = lambda read: read
    mended: Counter[str] = field(default_factory=Counter)

    def stream(self, limit: int | None = None, skip_broken: bool = False) -> Iterator[Row[Example]]:
        """Rows one by one, to the end or the limit, none of which is kept; what contradicts itself is broken as well.

        Whether ids are told twice is not looked at: that would need all of them.
        """
        if limit is not None:
            whole("limit", limit, 1)
        count = 0
        for row in self.rows:
            if not isinstance(row, Broken) and (why := self.fault(row.value)):
                row = Broken(row.file, row.line, why)
            if isinstance(row, Broken):
                self.leave(row, skip_broken)
                continue
            self.mended.update(row.mended)
            yield row
            count += 1
            if count == limit:
                return

    def leave(self, row: Broken, skip_broken: bool) -> None:
        if not skip_broken:
            raise InputError(f"{row}; mend it, or leave such records out (--skip-broken, skip_broken=True).")
        self.blank.broken.append(row)

    def read(self, limit: int | None = None, skip_broken: bool = False) -> Read:
        """All of them; an id that stands there twice is broken."""
        seen: dict[str, int] = {}
        if limit is not None:
            whole("limit", limit, 1)
        for row in self.stream(None, skip_broken):
            if why := id_fault(row, seen):
                self.leave(Broken(row.file, row.line, why), skip_broken)
                continue
            seen[row.value.id] = row.line
            self.blank.examples.append(row.value)
            if len(self.blank.examples) == limit:
                break
        return self.finish(replace(self.blank, mended=dict(self.mended)))


def id_fault(row: Row[Example], seen: dict[str, int]) -> str:
    name = row.value.id
    if not name:
        return "it has no id"
    return f"the id {name!r} stands in line {seen[name]} already" if name in seen else ""


def label_fault(wanted: Dataset, label: Any) -> str:
    if label is None:
        return "it has no label" if wanted.labelled else ""
    if not wanted.labels:
        return ""
    for each in label if wanted.task == "tagging" else (label,):
        if each not in wanted.labels:
            return f"the label {each!r} is none of {', '.join(wanted.labels)}"
    return ""


def gold_fault(task: str, example: Example) -> str:
    """Whether every gold span lies in a text of the example and marks something in it."""
    names = SEGMENTS[task]
    texts = dict(zip(names, (example.text, example.pair), strict=False))
    for span in example.gold:
        text = texts.get(span.segment or names[0])
        if text is None:
            return f"a gold span is about {span.segment!r}, but the texts are {', '.join(names)}"
        if span.end > len(text):
            return f"the gold span {span.start}..{span.end} goes beyond the text, which has {len(text)} characters"
        if not text[span.start : span.end].strip():
            return f"the gold span {span.start}..{span.end} marks nothing but white space"
    return ""
