"""LAMBADA passages with rationales."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.dataset_rows import Row, Rows, map_rows
from raison.datasets.json_files import Json, read_json_lines, required_json_field
from raison.datasets.lambada_passages import passage_example
from raison.datasets.text_files import find_file


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
        return map_rows(
            read_json_lines(find_file(place, "annotated_lambada.json")), lambada_annotated_passage
        )


def lambada_annotated_passage(row: Row[Json]) -> Example:
    """A passage, which must have a rationale."""
    index = required_json_field(row.value, "lambadaIndex", int)
    required_json_field(row.value, "rationale", list)
    return passage_example(row.value, index=index, id=str(index))
