"""Batches of a rationalizer: texts as padded tensors, what people marked of them, special tokens and padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from raison.core.errors import InputError
from raison.training.labelled_lines import LabelledLine
from raison.training.padding import pad_rows

__all__ = [
    "batch_inputs",
    "human_marks",
    "padding_id",
    "sorted_batches",
    "special_as_unknown",
    "special_ids",
]

SPECIAL = ("cls_token_id", "sep_token_id", "pad_token_id", "bos_token_id", "eos_token_id")


def batch_inputs(
    lines: Sequence[LabelledLine], pad: int, device: torch.device | None = None
) -> dict[str, torch.Tensor]:
    """The model's arguments for a batch."""
    ids, present = pad_rows([line.ids for line in lines], pad)
    inputs = {"input_ids": ids, "attention_mask": present.long()}
    if lines[0].types:
        types, _ = pad_rows([line.types for line in lines], 0)
        inputs["token_type_ids"] = types
    return {name: tensor.to(device) for name, tensor in inputs.items()}


def human_marks(lines: Sequence[LabelledLine]) -> tuple[torch.Tensor, torch.Tensor]:
    """[b t] what people marked, [b] texts where they did, and not only in what was cut off."""
    rows, known = [], []
    for line in lines:
        nothing_marked = (False,) * len(line)
        rows.append(line.gold or nothing_marked)
        known.append(any(line.gold))
    marks, _ = pad_rows(rows, 0)
    return marks.bool(), torch.tensor(known)


def sorted_batches(
    lines: Sequence[LabelledLine], pad: int, size: int = 64, device: torch.device | None = None
) -> Iterator[tuple[list[LabelledLine], dict[str, torch.Tensor]]]:
    """Batches of texts of like length, with the model's arguments."""
    by_length = sorted(lines, key=len)
    for start in range(0, len(by_length), size):
        batch = by_length[start : start + size]
        yield batch, batch_inputs(batch, pad, device)


def special_ids(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Tokens that are no words, but put around them; an unknown or masked word is a word."""
    ids: set[int | None] = {getattr(tokenizer, name, None) for name in SPECIAL}
    return sorted(number for number in ids if number is not None)


def special_as_unknown(
    ids: np.ndarray, start: np.ndarray, special: Sequence[int], tokenizer: PreTrainedTokenizerBase
) -> np.ndarray:
    """Special tokens that somebody typed as unknown words: else they would be read unselected."""
    typed = (start >= 0) & np.isin(ids, special)
    if not typed.any():
        return ids
    if tokenizer.unk_token_id is None:
        raise InputError(
            "A text holds special tokens of the model, which a rationalizer can't read: remove them."
        )
    return np.where(typed, tokenizer.unk_token_id, ids)


def padding_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """The token that fills rows up; 0 where there is none, since it is masked."""
    return int(tokenizer.pad_token_id or 0)
