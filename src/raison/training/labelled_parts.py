"""The train, dev and test examples of a labelled data set, which share no text, and their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TypeAlias

import numpy as np

from raison.core.errors import InputError
from raison.core.records import Example
from raison.core.registry import datasets
from raison.datasets.base import DEVELOPMENT
from raison.datasets.open import open_dataset, parse_data_spec
from raison.datasets.overlap import overlap

__all__ = ["examples_by_part", "labels_of_parts"]

Parts: TypeAlias = dict[str, list[Example]]
Counts: TypeAlias = dict[str, int]


def examples_by_part(
    data: str | Path | Iterable[Example],
    *,
    data_dir: str | Path | None,
    limit: int | None,
    held: float,
    seed: int,
    skip_broken: bool = False,
    regression: bool = False,
) -> tuple[Parts, Counts]:
    """train, dev and (where there is one) test examples, and what was left out; without a dev part some is held out."""
    left_out: Counts = {}
    if isinstance(data, (str, Path)):
        parts = parts_of_named_data(str(data), data_dir, limit, skip_broken, left_out)
    else:
        parts = {"train": list(data)[:limit]}
    if not parts["train"]:
        raise InputError("There are no texts to train on: the data is empty.")
    if "dev" not in parts:
        hold_out_development_part(parts, held, seed, keep_classes=not regression)

    others = [*parts["dev"], *parts.get("test", [])]
    copies = set(overlap(parts["train"], others))
    left_out["train, left out: in dev or test as well"] = len(copies)
    parts["train"] = labelled_examples_without(parts["train"], copies)
    if not parts["train"]:
        raise InputError(
            "All texts to train on stand in its development or test part as well: give other texts."
        )
    return parts, left_out


def parts_of_named_data(
    data: str, data_dir: str | Path | None, limit: int | None, skip_broken: bool, left_out: Counts
) -> Parts:
    """The parts of a data set that has some; all of a file is to train on. Broken records are counted."""
    name, _ = parse_data_spec(data)
    splits: Sequence[str] = ()
    if name in datasets:
        splits = datasets[name].splits
    if splits and "train" not in splits:
        raise InputError(
            f"{name!r} has no part to train on, only {', '.join(splits)}: name another data set."
        )
    wanted: dict[str, str | None] = {"train": None}  # all of a file
    if splits:
        wanted["train"] = "train"
    for name_of_dev in DEVELOPMENT:
        if name_of_dev in splits:
            wanted.setdefault("dev", name_of_dev)
    if "test" in splits:
        wanted["test"] = "test"

    parts = {}
    for part, split in wanted.items():
        loaded = open_dataset(data, split, limit, data_dir, skip_broken)
        if loaded.broken:
            left_out[f"{split or 'file'}, broken records left out"] = len(loaded.broken)
        parts[part] = loaded.examples
    return parts


def hold_out_development_part(parts: Parts, share: float, seed: int, *, keep_classes: bool) -> None:
    """Move a share of the training part to a development part; drawn by the seed."""
    train = parts["train"]
    order = np.random.default_rng([seed, len(train)]).permutation(len(train))
    count = max(1, round(share * len(order)))
    held = set(order[:count].tolist())
    if keep_classes:  # a class that only these have is not learned: one of each stays
        held -= only_texts_of_their_class(train, held)
    if not held:
        raise InputError(
            "No text can be held out, since no class has two: give more texts of each class."
        )
    parts["dev"] = [example for number, example in enumerate(train) if number in held]
    parts["train"] = labelled_examples_without(train, held)


def only_texts_of_their_class(examples: Sequence[Example], held: AbstractSet[int]) -> set[int]:
    """Of the texts that are to be held out, the first of each class that no other text has."""
    trained = {str(example.label) for example in labelled_examples_without(examples, held)}
    first: dict[str, int] = {}
    for number in sorted(held):
        label = str(examples[number].label)
        if label not in trained:
            first.setdefault(label, number)
    return set(first.values())


def labelled_examples_without(
    examples: Sequence[Example], numbers: AbstractSet[int]
) -> list[Example]:
    """The examples but those of some numbers."""
    return [example for number, example in enumerate(examples) if number not in numbers]


def labels_of_parts(parts: Mapping[str, Sequence[Example]]) -> tuple[str, ...]:
    """The labels of the training part, sorted; every other part must have no others."""
    missing = 0
    for part in parts.values():
        missing += sum(example.label is None for example in part)
    if missing:
        raise InputError(
            f"{missing} texts have no label: name their column, such as data.csv(text=review, label=stars)."
        )
    labels = labels_of_examples(parts["train"])
    if len(labels) < 2:
        only = next(iter(labels), "nothing")
        raise InputError(
            f"All training texts have the label {only!r}: a classifier needs at least two classes."
        )
    for name, part in parts.items():
        strange = sorted(labels_of_examples(part) - labels)
        if strange:
            raise InputError(
                f"The {name} part has the label {strange[0]!r}, which no training text has."
            )
    return tuple(sorted(labels))


def labels_of_examples(examples: Iterable[Example]) -> set[str]:
    return {str(example.label) for example in examples}
