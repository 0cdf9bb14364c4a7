"""IMDB reviews."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from raison.core.records import Example
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.dataset_rows import Row, Rows, filter_rows, map_rows
from raison.datasets.text_archives import read_archive_texts
from raison.datasets.text_files import find_file

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
        archive = find_file(place, "aclImdb_subset10000.tar.gz", "aclImdb_v1.tar.gz", "aclImdb")
        pattern = re.compile(rf"(?:^|/){split}/(neg|pos)/[0-9]+_[0-9]+\.txt$")
        files = filter_rows(
            read_archive_texts(archive), lambda file: pattern.search(file[0]) is not None
        )
        return map_rows(files, starred_review)


def starred_review(row: Row[tuple[str, str]]) -> Example:
    """The review of a file such as train/neg/12_3.txt: its class, a number, and its stars."""
    name, text = row.value
    folder, file = name.split("/")[-2:]
    number = file.removesuffix(".txt")
    _, _, stars = number.partition("_")
    return Example(
        text,
        id=f"{folder}/{number}",
        label=LABELS[folder],
        meta={"stars": int(stars)},
    )
