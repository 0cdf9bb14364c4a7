"""Sentences of Yelp reviews."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.records import Example
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.rows import Rows, alternately, each, lines, present


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
        return alternately(*(self.of_class(place, split, number) for number in range(len(self.labels))))

    def of_class(self, place: Path, split: str, number: int) -> Rows[Example]:
        rows = lines(present(place, f"sentiment.{split}.{number}"))
        return each(rows, lambda row: Example(row.value, id=f"{number}/{row.line}", label=self.labels[number]))
