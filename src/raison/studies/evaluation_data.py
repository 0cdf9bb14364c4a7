"""The data of an evaluation: its examples with ids and targets, and notes on what a reader must know of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from raison.api import Texts, examples_of
from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.loading import LoadedData
from raison.datasets.open import open_dataset
from raison.metrics.base import Metric

__all__ = [
    "DataRequest",
    "check_evaluation_examples",
    "count_in_data_note",
    "data_notes",
    "example_with_target",
    "examples_with_ids",
    "read_evaluation_data",
]


@dataclass(frozen=True, kw_only=True)
class DataRequest:
    """Which texts are asked for, and from where."""

    data: (
        Texts | str | os.PathLike[str] | None
    )  # examples or texts, the name of a data set, or a file
    split: str | None = None
    limit: int | None = None
    skip_broken: bool = False
    folder: Path | str | None = None  # that holds the data sets


def read_evaluation_data(request: DataRequest) -> LoadedData:
    """The examples of a list, a data set or a file."""
    data = request.data
    if isinstance(data, (str, os.PathLike)):
        return open_dataset(
            str(data),
            split=request.split,
            limit=request.limit,
            data=request.folder,
            skip_broken=request.skip_broken,
        )
    examples = examples_of(data)[: request.limit]  # type: ignore[arg-type]  # None is refused there in a sentence
    return LoadedData("texts", request.split or "", "text", (), examples)


def check_evaluation_examples(data: LoadedData, metrics: Sequence[Metric]) -> None:
    """Refuse before the work, not after it, what no metric can measure."""
    if not data.examples:
        if data.broken:
            raise InputError(
                f"All {len(data.broken)} records of {data.name} are broken; the first: {data.broken[0]}."
            )
        raise InputError(f"There is no text in {data.name}: name data that has some.")

    need_gold = []
    for metric in metrics:
        if "gold" in metric.needs:
            need_gold.append(metric.name)
    if need_gold and not data.gold:
        raise InputError(
            f"{data.name} has no human rationales to compare with: use data that has some, or another metric than "
            f"{', '.join(need_gold)}."
        )


def examples_with_ids(examples: Sequence[Example]) -> list[Example]:
    """Examples that can be told apart: those without an id are known by their number."""
    numbered = []
    for number, example in enumerate(examples):
        numbered.append(example if example.id else replace(example, id=str(number)))
    return numbered


def example_with_target(example: Example, target: str, data: str) -> Example:
    """The example with the target that is to be explained: of "predicted", "gold" or "given"."""
    if target == "predicted":
        return replace(example, target=None)
    named = example.id or example.text[:40]
    if target == "given":
        if example.target is None:
            raise InputError(f"The example {named!r} of {data} names no target to explain.")
        return example
    if example.label is None:
        raise InputError(f"The example {named!r} of {data} has no label: use target=predicted.")
    return replace(example, target=example.label)


def data_notes(data: LoadedData) -> list[str]:
    """What a reader must know of the data: how a file was understood, what was left out or put right."""
    notes = []
    if data.understood:
        notes.append(data.understood)
    notes += data.doubts
    if data.broken:
        notes.append(
            f"{count_in_data_note(len(data.broken), 'broken record was', 'broken records were')} left out"
        )
    for what, count in data.mended.items():
        notes.append(f"put right in {count_in_data_note(count, 'record', 'records')}: {what}")
    return notes


def count_in_data_note(count: int, one: str, many: str) -> str:
    """A number with the word for one or for many."""
    return f"{count} {one if count == 1 else many}"
