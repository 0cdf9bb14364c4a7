"""Movie reviews as NLTK packs them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.records import Example
from raison.core.spec import one_of
from raison.datasets.archive import member_lines, texts
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.rows import Broken, Row, Rows, alternately, each, present

LABELS = {"neg": "negative", "pos": "positive"}


@dataset("nltk_reviews")
@dataclass(frozen=True)
class NltkReviews(Dataset):
    """Movie reviews, or sentences of such, with polarity.

    Never train on them for a test on ERASER's movies or SST: 1,998 of the 2,000 reviews are ERASER's documents, and
    most test sentences of SST are among these sentences.
    """

    task = "classification"
    splits = ("all",)
    folder = "nltk_reviews"
    source = "https://github.com/nltk/nltk_data"
    paper = "Pang and Lee 2004, A Sentimental Education; Pang and Lee 2005, Seeing Stars"
    labels = negative_positive
    blocks = True

    corpus: str = "reviews"  # reviews: 2,000 whole ones; sentences: 10,662

    def __post_init__(self) -> None:
        one_of("corpus", self.corpus, ("reviews", "sentences"))

    def rows(self, place: Path, split: str) -> Rows[Example]:
        if self.corpus == "reviews":
            archive = present(place, "movie_reviews.zip", "movie_reviews")
            found = (row for row in texts(archive) if isinstance(row, Broken) or row.value[0].endswith(".txt"))
            yield from each(found, review)
            return
        archive = present(place, "sentence_polarity.zip", "sentence_polarity")
        yield from alternately(*(sentences(archive, short) for short in LABELS))


def review(row: Row[tuple[str, str]]) -> Example:
    name, text = row.value
    folder, file = name.split("/")[-2:]
    return Example(text, id=f"{folder}/{file.removesuffix('.txt')}", label=LABELS.get(folder))


def sentences(archive: Path, short: str) -> Rows[Example]:
    rows = member_lines(archive, f"rt-polarity.{short}")
    return each(rows, lambda row: Example(row.value.strip(), id=f"{short}/{row.line}", label=LABELS[short]))
