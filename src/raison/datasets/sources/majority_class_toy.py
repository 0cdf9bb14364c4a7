"""Bits and their majority."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.rows import Row, Rows, each, lines, present

BITS = 17


@dataset("majority_class_toy")
@dataclass(frozen=True)
class MajorityClassToy(Dataset):
    """Seventeen random bits, "=", and the bit that stands there more often."""

    task = "causal"
    splits = ("train", "valid", "test")
    folder = "majority_class_toy"
    source = "https://github.com/keyonvafa/sequential-rationales"
    paper = "Vafa et al. 2021, Rationales for Sequential Predictions"
    labels = ("0", "1")

    def rows(self, place: Path, split: str) -> Rows[Example]:
        return each(lines(present(place, f"{split}.tok")), example)


def example(row: Row[str]) -> Example:
    pieces = row.value.split()
    if len(pieces) != BITS + 2 or pieces[BITS] != "=" or not {*pieces[:BITS], pieces[-1]} <= {"0", "1"}:
        raise InputError(f"it is not {BITS} bits, = and a bit.")
    majority = "1" if pieces[:BITS].count("1") > BITS // 2 else "0"
    if pieces[-1] != majority:
        raise InputError(f"the last bit is {pieces[-1]}, but most are {majority}.")
    return Example(" ".join(pieces[:-1]), id=str(row.line), target=f" {majority}", label=majority)
