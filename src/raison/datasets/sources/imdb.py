"""IMDB reviews."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from raison.core.records import Example
from raison.datasets.archive import texts
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.rows import Row, Rows, each, present

NAME = re.compile(r"(?:^|/)(train|test)/(neg|pos)/(([0-9]+)_([0-9]+))\.txt$")
LABELS = {"neg": "negative", "pos": "positive"}


@dataset("imdb")
@dataclass(frozen=True)
class Imdb(Dataset):
    """Movie reviews with the sentiment of their stars, as they were written (line breaks are <br />)."""

    task = "classification"
    splits = ("train", "test")
    folder = "imdb"
    source = "https://ai.stanford.edu/~amaas/data/sentiment"
    paper = "Maas et al. 2011, Learning Word Vectors for Sentiment Analysis"
    labels = negative_positive
    blocks = True

    def rows(self, place: Path, split: str) -> Rows[Example]:
        archive = present(place, "aclImdb_subset10000.tar.gz", "aclImdb_v1.tar.gz", "aclImdb")
        return each((row for row in texts(archive) if not isinstance(row, Row) or inside(row, split)), example)


def inside(row: Row[tuple[str, str]], split: str) -> bool:
    match = NAME.search(row.value[0])
    return match is not None and match[1] == split


def example(row: Row[tuple[str, str]]) -> Example:
    name, text = row.value
    match = NAME.search(name)
    assert match is not None  # `inside` has looked
    label = LABELS[match[2]]
    return Example(text, id=f"{match[2]}/{match[3]}", label=label, meta={"stars": int(match[5])})
