"""Loading: a source of examples that nobody has read yet (`ExampleSource`), and the account of what was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from raison.core.errors import InputError
from raison.core.parameters import check_integer
from raison.core.records import Example
from raison.datasets.dataset_rows import Broken, Row
from raison.datasets.faults import id_fault

__all__ = ["ExampleSource", "LoadedData"]


@dataclass(frozen=True)
class LoadedData:
    """What was read: the examples, and an account of what was not."""

    name: str  # the spec of the data set
    split: str
    task: str  # classification | pair | tagging | qa | causal | seq2seq | text
    labels: tuple[
        str, ...
    ]  # names in the order of a model's classes; empty where there are no classes
    examples: list[Example]
    broken: list[Broken] = field(default_factory=list)  # left out, only with skip_broken
    mended: dict[str, int] = field(
        default_factory=dict
    )  # what was put right in reading -> in how many records
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


@dataclass
class ExampleSource:
    """Rows that nobody has read yet, and what their account will say."""

    rows: Iterable[Row[Example] | Broken]
    fault: Callable[[Example], str]  # what is wrong with an example; nothing, mostly
    blank: LoadedData  # the account, before anything is read
    finish: Callable[[LoadedData], LoadedData] = lambda loaded: loaded
    mended: Counter[str] = field(default_factory=Counter)

    def stream(self, limit: int | None = None, skip_broken: bool = False) -> Iterator[Row[Example]]:
        """Rows one by one, to the end or the limit, none of which is kept; what contradicts itself is broken as well.

        Whether ids are told twice is not looked at: that would need all of them.
        """
        if limit is not None:
            check_integer("limit", limit, 1)

        count = 0
        for row in self.rows:
            broken = self.broken_row(row)
            if broken is not None:
                self.leave_out(broken, skip_broken)
                continue
            if isinstance(row, Row):
                self.mended.update(row.mended)
                yield row
            count += 1
            if count == limit:
                return

    def broken_row(self, row: Row[Example] | Broken) -> Broken | None:
        """The row as a broken one, if it is one or contradicts itself."""
        if isinstance(row, Broken):
            return row
        fault = self.fault(row.value)
        return row.broken(fault) if fault else None

    def leave_out(self, broken: Broken, skip_broken: bool) -> None:
        """Put a broken record into the account, or refuse to go on."""
        if not skip_broken:
            raise InputError(
                f"{broken}; mend it, or leave such records out (--skip-broken, skip_broken=True)."
            )
        self.blank.broken.append(broken)

    def read(self, limit: int | None = None, skip_broken: bool = False) -> LoadedData:
        """All of them, or the first `limit`; an id that stands there twice is broken."""
        if limit is not None:
            check_integer("limit", limit, 1)

        lines: dict[str, int] = {}  # of the ids
        for row in self.stream(None, skip_broken):
            example = row.value
            fault = id_fault(example.id, lines)
            if fault:
                self.leave_out(row.broken(fault), skip_broken)
                continue

            lines[example.id] = row.line
            self.blank.examples.append(example)
            if len(self.blank.examples) == limit:
                break
        return self.finish(replace(self.blank, mended=dict(self.mended)))
