"""Short reviews that come with raison, so that the first evaluation needs no download."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from raison.core.records import Example, Span
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.dataset_rows import Row, Rows, map_rows
from raison.datasets.table import read_plain_columns
from raison.datasets.text_files import find_file


@dataset("reviews")
@dataclass(frozen=True)
class Reviews(Dataset):
    """Sixty short film reviews, written for raison, with the words that carry their sentiment: nothing to download.

    For first steps and examples; what is measured on it says little about other texts.
    """

    task = "classification"
    splits = ("test",)
    embedded = True
    folder = "reviews"
    source = "raison itself"
    labels = negative_positive
    gold = True

    def rows(self, place: Path, split: str) -> Rows[Example]:
        return map_rows(read_plain_columns(find_file(place, "reviews.tsv"), 2), marked_review)


def marked_review(row: Row[list[str]]) -> Example:
    """The example of a label and a text, in which marked words stand between asterisks."""
    label, written = row.value
    text = ""
    gold = []
    for number, piece in enumerate(re.split(r"\*", written)):
        if number % 2:
            gold.append(Span(len(text), len(text) + len(piece), "text"))
        text += piece
    return Example(
        text,
        id=str(row.line),
        label=label,
        gold=tuple(gold),
    )
