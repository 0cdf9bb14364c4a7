"""Labelled texts to train on: parts of a data set that share no text, as token numbers cut as evaluation cuts them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.fingerprint import sha256_of_file
from raison.core.records import Example
from raison.core.registry import datasets
from raison.datasets.base import DEVELOPMENT
from raison.datasets.open import open_dataset, parse_data_spec
from raison.datasets.overlap import overlap
from raison.models.axis import cut
from raison.models.codec import Codec, Pieces
from raison.training.lm_data import named

__all__ = ["Line", "Lines", "content_of", "data_mark", "examples_by_part", "labels_of", "lines_of", "padded"]


@dataclass(frozen=True)
class Line:
    """One text to learn: its tokens and the number of its label (or what a regression is to say)."""

    ids: tuple[int, ...]
    label: float
    types: tuple[int, ...] = ()  # token_type_ids, where the tokenizer makes them
    gold: tuple[bool, ...] = ()  # tokens that people marked, where they did

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Lines:
    """The texts of each part, and what was cut."""

    parts: dict[str, list[Line]]
    labels: tuple[str, ...]
    counts: dict[str, int]

    def content(self) -> str:
        made = hashlib.sha256()
        for name, lines in self.parts.items():
            made.update(name.encode())
            for line in lines:
                made.update(np.array([*line.ids, *line.gold], np.int64).tobytes() + f"{line.label}|".encode())
        return made.hexdigest()[:16]


def examples_by_part(
    data: Any,
    *,
    data_dir: Any,
    limit: int | None,
    held: float,
    seed: int,
    skip_broken: bool = False,
    regression: bool = False,
) -> tuple[dict[str, list[Example]], dict[str, int]]:
    """train, dev and (where there is one) test examples, and what was left out; without a dev part some is held out."""
    left: dict[str, int] = {}
    if not isinstance(data, (str, Path)):
        parts = {"train": list(data)[:limit]}
    else:
        name, _ = parse_data_spec(str(data))
        splits = datasets[name].splits if name in datasets else ()

        def read(split: str | None) -> list[Example]:
            found = open_dataset(str(data), split, limit, data_dir, skip_broken)
            if found.broken:
                left[f"{split or 'file'}, broken records left out"] = len(found.broken)
            return found.examples

        if splits and "train" not in splits:
            raise InputError(f"{name!r} has no part to train on, only {', '.join(splits)}: name another data set.")
        parts = {"train": read("train" if splits else None)}
        for wanted, known in (("dev", DEVELOPMENT), ("test", ("test",))):
            if found := next((split for split in known if split in splits), None):
                parts[wanted] = read(found)
    if not parts["train"]:
        raise InputError("There are no texts to train on: the data is empty.")
    if "dev" not in parts:
        order = np.random.default_rng([seed, len(parts["train"])]).permutation(len(parts["train"]))
        out = {int(k) for k in order[: max(1, round(held * len(order)))]}
        if not regression:  # a class that only these have is not learned: one of each stays
            out -= only_ones(parts["train"], out)
        if not out:
            raise InputError("No text can be held out, since no class has two: give more texts of each class.")
        parts["dev"] = [e for k, e in enumerate(parts["train"]) if k in out]
        parts["train"] = [e for k, e in enumerate(parts["train"]) if k not in out]
    every = len(parts["train"])
    copies = set(overlap(parts["train"], [e for part in ("dev", "test") for e in parts.get(part, [])]))
    parts["train"] = [e for number, e in enumerate(parts["train"]) if number not in copies]
    left["train, left out: in dev or test as well"] = every - len(parts["train"])
    if not parts["train"]:
        raise InputError("All texts to train on stand in its development or test part as well: give other texts.")
    return parts, left


def only_ones(examples: Sequence[Example], out: set[int]) -> set[int]:
    """Of the texts that are to be held out, the first of each class that no other text has."""
    kept = {str(e.label) for k, e in enumerate(examples) if k not in out}
    first: dict[str, int] = {}
    for k in sorted(out):
        if (label := str(examples[k].label)) not in kept:
            first.setdefault(label, k)
    return set(first.values())


def labels_of(parts: dict[str, list[Example]]) -> tuple[str, ...]:
    """The labels of the training part, sorted; every other part must have no others."""
    if missing := sum(e.label is None for part in parts.values() for e in part):
        raise InputError(
            f"{missing} texts have no label: name their column, such as data.csv(text=review, label=stars)."
        )
    counts = Counter(str(e.label) for e in parts["train"])
    if len(counts) < 2:
        only = next(iter(counts), "nothing")
        raise InputError(f"All training texts have the label {only!r}: a classifier needs at least two classes.")
    for name, part in parts.items():
        if strange := sorted({str(e.label) for e in part} - set(counts)):
            raise InputError(f"The {name} part has the label {strange[0]!r}, which no training text has.")
    return tuple(sorted(counts))


def lines_of(
    parts: dict[str, list[Example]],
    tokenizer: Any,
    labels: Sequence[str],
    longest: int,
    read: Callable[[Pieces], np.ndarray] = lambda pieces: pieces.ids,
) -> Lines:
    """Token numbers of all texts; one that is too long is cut where explaining it would cut it.

    Without `labels` the label is a number that a regression is to say. `read` gives the numbers that a model reads.
    """
    codec = Codec(tokenizer)
    numbers = {label: number for number, label in enumerate(labels)}
    made: dict[str, list[Line]] = {}
    counts: dict[str, int] = {}
    for name, part in parts.items():
        made[name] = []
        for example in part:
            pieces = codec(example.text, example.pair)
            if len(pieces.ids) > longest:
                counts[f"{name}, cut"] = counts.get(f"{name}, cut", 0) + 1
                pieces = cut(pieces, len(pieces.ids) - longest, False)
            label = numbers[str(example.label)] if numbers else number_of(example)
            types = () if pieces.types is None else tuple(pieces.types.tolist())
            made[name].append(Line(tuple(read(pieces).tolist()), label, types, marked(pieces, example)))
        counts[name] = len(part)
    return Lines(made, tuple(labels), counts)


def number_of(example: Example) -> float:
    """The label of a regression."""
    try:
        value = float(example.label)
    except (TypeError, ValueError):
        value = float("nan")
    if not np.isfinite(value):
        raise InputError(
            f"The label {example.label!r} of {example.text[:40]!r} is no number, which a regression needs."
        )
    return value


def marked(pieces: Pieces, example: Example) -> tuple[bool, ...]:
    """[t] tokens that share a character with the human rationale; () where there is none."""
    if not example.gold:
        return ()
    second = ("second", "context")
    spans = [(int(span.segment in second), span.start, span.end) for span in example.gold]
    rows = zip(pieces.segment, pieces.start, pieces.end, pieces.special, strict=True)
    return tuple(
        bool(not special and any(segment == where and start < stop and begin < end for where, begin, stop in spans))
        for segment, start, end, special in rows
    )


def padded(
    lines: Sequence[Line], pad: int = 0, device: torch.device | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """[b t] ids, [b t] what is there, [b] labels."""
    width = max(map(len, lines))
    ids = torch.full((len(lines), width), pad)
    for row, line in enumerate(lines):
        ids[row, : len(line)] = torch.tensor(line.ids)
    there = torch.arange(width) < torch.tensor([len(line) for line in lines])[:, None]
    return ids.to(device), there.to(device), torch.tensor([line.label for line in lines], device=device)


def content_of(data: Any) -> str:
    """The content of a file, so that another one of the same name is not taken for it; nothing of other data."""
    if not isinstance(data, (str, Path)):
        return ""
    place = Path(parse_data_spec(str(data))[0]).expanduser()
    return sha256_of_file(place)[:16] if place.is_file() else ""


def data_mark(data: Any) -> str:
    """What the data is called; a list of texts in memory is known by its content."""
    if isinstance(data, (str, Path)):
        return named(data)
    made = hashlib.sha256()
    for example in data:
        made.update(example.content().encode())
    return f"texts in memory, {made.hexdigest()[:16]}"
