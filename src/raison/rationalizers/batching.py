"""Texts as the tensors that a rationalizer takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from raison.core.errors import InputError
from raison.training.class_data import Line

__all__ = ["added_by", "as_words", "marks", "pad_of", "sorted_batches", "tensors"]


def tensors(lines: Sequence[Line], pad: int, device: torch.device | None = None) -> dict[str, torch.Tensor]:
    """The model's arguments for a batch."""
    width = max(map(len, lines))
    fill = lambda rows, value: torch.tensor([[*row, *[value] * (width - len(row))] for row in rows])  # noqa: E731
    made = {"input_ids": fill([line.ids for line in lines], pad)}
    made["attention_mask"] = fill([[1] * len(line) for line in lines], 0)
    if lines[0].types:
        made["token_type_ids"] = fill([line.types for line in lines], 0)
    return {name: tensor.to(device) for name, tensor in made.items()}


def marks(lines: Sequence[Line]) -> tuple[torch.Tensor, torch.Tensor]:
    """[b t] what people marked, [b] texts where they did, and not only in what was cut off."""
    width = max(map(len, lines))
    rows = [[*(line.gold or [False] * len(line)), *[False] * (width - len(line))] for line in lines]
    return torch.tensor(rows), torch.tensor([any(line.gold) for line in lines])


def sorted_batches(
    lines: Sequence[Line], pad: int, size: int = 64, device: torch.device | None = None
) -> Iterator[tuple[list[Line], dict[str, Any]]]:
    order = sorted(range(len(lines)), key=lambda k: len(lines[k]))
    for start in range(0, len(order), size):
        chosen = [lines[k] for k in order[start : start + size]]
        yield chosen, tensors(chosen, pad, device)


def added_by(tokenizer: Any) -> list[int]:
    """Tokens that are no words, but put around them; an unknown or masked word is a word."""
    names = ("cls_token_id", "sep_token_id", "pad_token_id", "bos_token_id", "eos_token_id")
    return sorted({found for name in names if (found := getattr(tokenizer, name, None)) is not None})


def as_words(ids: np.ndarray, start: np.ndarray, special: Sequence[int], tokenizer: Any) -> np.ndarray:
    """Special tokens that somebody typed as unknown words: else they would be read unselected."""
    typed = (start >= 0) & np.isin(ids, special)
    if typed.any() and tokenizer.unk_token_id is None:
        raise InputError("A text holds special tokens of the model, which a rationalizer can't read: remove them.")
    return np.where(typed, tokenizer.unk_token_id, ids) if typed.any() else ids


def pad_of(tokenizer: Any) -> int:
    return int(tokenizer.pad_token_id) if tokenizer.pad_token_id is not None else 0
