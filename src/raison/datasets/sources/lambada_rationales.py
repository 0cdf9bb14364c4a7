"""LAMBADA passages with rationales."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.jsonl import objects, value_of
from raison.datasets.lambada import passage
from raison.datasets.rows import Rows, each, present


@dataset("lambada_rationales")
@dataclass(frozen=True)
class LambadaRationales(Dataset):
    """LAMBADA passages with the words that people needed to guess the last one.

    Gold spans stand in the order in which they were marked; the first is the word before the last one, which everybody
    is given. `meta["index"]` is the row of the passage in the test set, counted from 0.
    """

    task = "causal"
    splits = ("test",)
    folder = "lambada_rationales"
    source = "https://github.com/keyonvafa/sequential-rationales"
    paper = "Vafa et al. 2021, Rationales for Sequential Predictions"
    gold = True

    def rows(self, place: Path, split: str) -> Rows[Example]:
        def example(row) -> Example:
            index = value_of(row.value, "lambadaIndex", int)
            value_of(row.value, "rationale", list)
            return passage(row.value, str(index), index=index)

        return each(objects(present(place, "annotated_lambada.json")), example)
