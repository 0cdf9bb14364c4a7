"""Movie reviews with evidence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.parameters import check_choice
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.dataset_rows import Rows
from raison.datasets.eraser_format import LEVELS, read_eraser

LABELS = {"NEG": "negative", "POS": "positive"}


@dataset("eraser_movies")
@dataclass(frozen=True)
class EraserMovies(Dataset):
    """Movie reviews with the passages that people marked as evidence for their sentiment (ERASER).

    Fourteen reviews of the test part have twenty pieces of evidence without a single token; they are left out and the
    reviews counted as mended. One review of the training part has no evidence at all.
    """

    task = "classification"
    splits = ("train", "val", "test")
    folder = "eraser_movies"
    source = "https://www.eraserbenchmark.com"
    paper = "Zaidan et al. 2007, Using Annotator Rationales; DeYoung et al. 2020, ERASER"
    labels = negative_positive
    gold = True
    blocks = True

    level: str = "span"  # span: evidence as it was marked; sentence: every sentence that holds some

    def __post_init__(self) -> None:
        check_choice("level", self.level, LEVELS)

    def rows(self, place: Path, split: str) -> Rows[Example]:
        return read_eraser(
            place,
            split,
            level=self.level,
            labels=LABELS,
            drop_empty=True,
        )
