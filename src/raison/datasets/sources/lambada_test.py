"""LAMBADA."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.dataset_rows import Row, Rows, map_rows
from raison.datasets.json_files import Json, read_json_lines
from raison.datasets.lambada_passages import passage_example
from raison.datasets.text_files import find_file


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
        return map_rows(read_json_lines(find_file(place, "lambada_test.jsonl")), lambada_passage)


def lambada_passage(row: Row[Json]) -> Example:
    """A passage whose id is its row, from 0."""
    index = row.line - 1
    return passage_example(row.value, index=index, id=str(index))
