"""Sentences of Yelp reviews."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.records import Example
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.dataset_rows import Rows, interleave_rows, map_rows
from raison.datasets.text_files import find_file, read_lines


@dataset("yelp_sentences")
@dataclass(frozen=True)
class YelpSentences(Dataset):
    """Short sentences of reviews on Yelp with the sentiment of their review, tokenized and in lower case.

    The files hold one class each; their sentences are read in turn.
    """

    task = "classification"
    splits = ("dev", "test")
    folder = "yelp_sentences"
    source = "https://github.com/shentianxiao/language-style-transfer"
    paper = "Shen et al. 2017, Style Transfer from Non-Parallel Text by Cross-Alignment"
    labels = negative_positive

    def rows(self, place: Path, split: str) -> Rows[Example]:
        numbers = range(len(self.labels))
        classes = [self.sentences_of_class(place, split, number) for number in numbers]
        return interleave_rows(*classes)

    def sentences_of_class(self, place: Path, split: str, number: int) -> Rows[Example]:
        """The sentences of the file of a class."""
        label = self.labels[number]
        path = find_file(place, f"sentiment.{split}.{number}")
        rows = read_lines(path)
        return map_rows(
            rows, lambda row: Example(row.value, id=f"{number}/{row.line}", label=label)
        )
