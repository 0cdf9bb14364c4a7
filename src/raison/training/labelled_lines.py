"""Labelled lines: texts with labels as a classifier is trained on them, as padded token numbers and human marks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.records import Example
from raison.models.codec import Codec, Pieces
from raison.training.padding import pad_rows

Tokenizer: TypeAlias = Any  # of transformers, or one with some of its attributes

__all__ = [
    "LabelledLine",
    "LabelledLines",
    "human_marked_tokens",
    "padded_lines",
    "read_labelled_lines",
]


@dataclass(frozen=True)
class LabelledLine:
    """One text to learn: its tokens and the number of its label (or what a regression is to say)."""

    ids: tuple[int, ...]
    label: float
    types: tuple[int, ...] = ()  # token_type_ids, where the tokenizer makes them
    gold: tuple[bool, ...] = ()  # tokens that people marked, where they did

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class LabelledLines:
    """The texts of each part, and what was cut."""

    parts: dict[str, list[LabelledLine]]
    labels: tuple[str, ...]
    counts: dict[str, int]

    def content(self) -> str:
        """A hash of all tokens and labels: other texts are another run."""
        digest = hashlib.sha256()
        for name, lines in self.parts.items():
            digest.update(name.encode())
            for line in lines:
                tokens = np.array([*line.ids, *line.gold], np.int64)
                digest.update(tokens.tobytes())
                digest.update(f"{line.label}|".encode())
        return digest.hexdigest()[:16]


def read_labelled_lines(
    parts: Mapping[str, Sequence[Example]],
    tokenizer: Tokenizer,
    labels: Sequence[str],
    longest: int,
    read: Callable[[Pieces], np.ndarray] = lambda pieces: pieces.ids,
) -> LabelledLines:
    """Token numbers of all texts; one that is too long is cut where explaining it would cut it.

    Without `labels` the label is a number that a regression is to say. `read` gives the numbers that a model reads.
    """
    codec = Codec(tokenizer)
    numbers = {label: number for number, label in enumerate(labels)}
    lines: dict[str, list[LabelledLine]] = {}
    counts: dict[str, int] = {}
    for name, part in parts.items():
        lines[name] = []
        for example in part:
            pieces = codec(example.text, example.pair)
            if len(pieces.ids) > longest:
                cut_texts = f"{name}, cut"
                counts[cut_texts] = counts.get(cut_texts, 0) + 1
                pieces = pieces.without_surplus(len(pieces.ids) - longest)
            if numbers:
                label: float = numbers[str(example.label)]
            else:
                label = regression_label(example)
            types: tuple[int, ...] = ()
            if pieces.types is not None:
                types = tuple(pieces.types.tolist())
            line = LabelledLine(
                ids=tuple(read(pieces).tolist()),
                label=label,
                types=types,
                gold=human_marked_tokens(pieces, example),
            )
            lines[name].append(line)
        counts[name] = len(part)
    return LabelledLines(lines, tuple(labels), counts)


def regression_label(example: Example) -> float:
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


def human_marked_tokens(pieces: Pieces, example: Example) -> tuple[bool, ...]:
    """[t] tokens that share a character with the human rationale; () where there is none."""
    if not example.gold:
        return ()
    gold = np.zeros(len(pieces.ids), bool)
    for span in example.gold:
        segment = int(span.segment in ("second", "context"))
        overlaps = (pieces.start < span.end) & (span.start < pieces.end)
        gold |= overlaps & (pieces.segment == segment)
    gold &= ~pieces.special.astype(bool)
    return tuple(gold.tolist())


def padded_lines(
    lines: Sequence[LabelledLine], pad: int = 0, device: torch.device | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """[b t] ids, [b t] what is there, [b] labels."""
    ids, there = pad_rows([line.ids for line in lines], pad)
    labels = torch.tensor([line.label for line in lines], device=device)
    return ids.to(device), there.to(device), labels
