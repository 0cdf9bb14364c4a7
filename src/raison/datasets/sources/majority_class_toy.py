"""Bits and their majority."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.dataset_rows import Row, Rows, map_rows
from raison.datasets.text_files import find_file, read_lines

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
        return map_rows(read_lines(find_file(place, f"{split}.tok")), bits_example)


def bits_example(row: Row[str]) -> Example:
    """The bits of a line, and which of them stands there more often."""
    pieces = row.value.split()
    *question, answer = pieces or [""]
    *bits, sign = question or [""]
    if len(bits) != BITS or sign != "=" or not {"0", "1"}.issuperset([*bits, answer]):
        raise InputError(f"it is not {BITS} bits, = and a bit.")

    majority = "1" if bits.count("1") > BITS // 2 else "0"
    if answer != majority:
        raise InputError(f"the last bit is {answer}, but most are {majority}.")
    return Example(
        " ".join(question),
        id=str(row.line),
        target=f" {majority}",
        label=majority,
    )
