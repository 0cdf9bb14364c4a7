"""LAMBADA."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.jsonl import objects
from raison.datasets.lambada import passage
from raison.datasets.rows import Rows, each, present


@dataset("lambada_test")
@dataclass(frozen=True)
class LambadaTest(Dataset):
    """Passages of novels whose last word can be guessed only from the whole passage; ids count rows from 0."""

    task = "causal"
    splits = ("test",)
    folder = "lambada_test"
    source = "https://zenodo.org/records/2630551"
    paper = "Paperno et al. 2016, The LAMBADA dataset"

    def rows(self, place: Path, split: str) -> Rows[Example]:
        found = objects(present(place, "lambada_test.jsonl"))
        return each(found, lambda row: passage(row.value, str(row.line - 1), index=row.line - 1))
