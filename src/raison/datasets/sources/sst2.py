"""SST-2."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.dataset_rows import Row, Rows, map_rows
from raison.datasets.table import read_plain_columns
from raison.datasets.text_files import find_file


@dataset("sst2")
@dataclass(frozen=True)
class Sst2(Dataset):
    """Sentences of movie reviews, negative or positive, in lower case without the final period."""

    task = "classification"
    splits = ("train", "dev", "test")
    folder = "sst2"
    source = "https://github.com/clairett/pytorch-sentiment-classification"
    paper = "Socher et al. 2013, Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank"
    labels = negative_positive

    def rows(self, place: Path, split: str) -> Rows[Example]:
        return map_rows(read_plain_columns(find_file(place, f"{split}.tsv"), 2), sst2_example)


def sst2_example(row: Row[list[str]]) -> Example:
    """The example of a text and the number of its class."""
    text, label = row.value
    if label not in ("0", "1"):
        raise InputError(f"the label {label!r} is neither 0 nor 1.")
    return Example(text, id=str(row.line), label=negative_positive[int(label)])
