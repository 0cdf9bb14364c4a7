"""What a data set is (`Dataset`): a frozen set of parameters that reads a split into examples."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from raison.core.errors import InputError
from raison.core.parameters import changed_parameters
from raison.core.records import Example
from raison.core.registry import datasets, suggest_name
from raison.core.spec import Spec
from raison.datasets.dataset_rows import Rows, rows_with_labels_in_turn
from raison.datasets.faults import gold_fault, label_fault
from raison.datasets.loading import ExampleSource, LoadedData

__all__ = ["DEVELOPMENT", "Dataset", "dataset", "folder_of_dataset", "negative_positive"]

D = TypeVar("D", bound="type[Dataset]")
DataFolder = str | os.PathLike[str] | None  # the data directory; None: the variable RAISON_DATA

DEVELOPMENT = ("dev", "val", "valid", "validation")  # what publishers call the same thing
negative_positive = ("negative", "positive")


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
    # the files hold one class after the other: they are read in turn
    blocks: ClassVar[bool] = False

    @abstractmethod
    def rows(self, place: Path, split: str) -> Rows[Example]:
        """The examples of a split one by one, from the files in the folder `place`."""

    def set_facts(self, **facts: object) -> None:
        """Give this object another task, other splits or labels than its class, where its parameters say so.

        For `__post_init__`: the object is frozen afterwards.
        """
        for name, value in facts.items():
            object.__setattr__(self, name, value)

    def spec(self) -> Spec:
        """How to write this data set: its name and what differs from the defaults."""
        return Spec(self.name, changed_parameters(self))

    def split(self, wanted: str | None) -> str:
        """The split that is meant; `dev`, `val`, `valid` and `validation` are the same, and `test` is the default."""
        splits = self.splits
        if wanted is None:
            return "test" if "test" in splits else splits[-1]
        if wanted in splits:
            return wanted
        if wanted in DEVELOPMENT:
            for split in splits:
                if split in DEVELOPMENT:
                    return split

        near = suggest_name(str(wanted), list(splits))
        known = ", ".join(splits)
        raise InputError(
            f"The data set {self.spec()} has no split {wanted!r}.{near} It has: {known}."
        )

    def read(
        self,
        split: str | None = None,
        limit: int | None = None,
        skip_broken: bool = False,
        data: DataFolder = None,
    ) -> LoadedData:
        """The first `limit` examples of a split; a broken record is an error, or counted with `skip_broken`."""
        return self.open_split(split, data).read(limit, skip_broken)

    def open_split(self, split: str | None = None, data: DataFolder = None) -> ExampleSource:
        """The examples of a split, not read yet."""
        name = self.split(split)
        folder = folder_of_dataset(self, data)
        rows = self.rows(folder, name)
        if self.blocks:
            rows = rows_with_labels_in_turn(rows, self.labels)

        blank = LoadedData(
            name=str(self.spec()),
            split=name,
            task=self.task,
            labels=tuple(self.labels),
            examples=[],
        )
        return ExampleSource(rows, self.fault, blank)

    def fault(self, example: Example) -> str:
        """What is wrong with an example of this data set; nothing, mostly."""
        of_label = label_fault(
            self.task,
            self.labels,
            example.label,
            needed=self.labelled,
        )
        return of_label or gold_fault(self.task, example)


def dataset(name: str) -> Callable[[D], D]:
    """Register a data set under the name that users type."""
    return datasets.named(name)


def folder_of_dataset(dataset: Dataset | type[Dataset], data: DataFolder) -> Path:
    """The folder of a data set below the data directory: the argument, else the variable RAISON_DATA."""
    if dataset.embedded:
        return Path(__file__).parent / "embedded"

    place = data if data is not None else os.environ.get("RAISON_DATA")
    if not place:
        raise InputError(
            f"The data set {dataset.name!r} is read from a folder of your own: set the variable RAISON_DATA to the "
            f"directory that holds {dataset.folder!r}, which is published at {dataset.source}."
        )
    folder = Path(place) / dataset.folder
    if not folder.is_dir():
        raise InputError(
            f"There is no folder {dataset.folder!r} in {str(place)!r}: set RAISON_DATA to the directory that holds it; "
            f"the data set is published at {dataset.source}."
        )
    return folder
