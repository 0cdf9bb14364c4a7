"""Movie reviews as NLTK packs them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.parameters import check_choice
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.dataset_rows import Row, Rows, filter_rows, interleave_rows, map_rows
from raison.datasets.text_archives import read_archive_lines, read_archive_texts
from raison.datasets.text_files import find_file

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
        check_choice("corpus", self.corpus, ("reviews", "sentences"))

    def rows(self, place: Path, split: str) -> Rows[Example]:
        if self.corpus == "reviews":
            archive = find_file(place, "movie_reviews.zip", "movie_reviews")
            reviews = filter_rows(
                read_archive_texts(archive), lambda file: file[0].endswith(".txt")
            )
            return map_rows(reviews, review_example)

        archive = find_file(place, "sentence_polarity.zip", "sentence_polarity")
        classes = [nltk_sentences_of_class(archive, short) for short in LABELS]
        return interleave_rows(*classes)


def review_example(row: Row[tuple[str, str]]) -> Example:
    """The example of a file, in the folder of its class."""
    name, text = row.value
    folder, file = name.split("/")[-2:]
    number = file.removesuffix(".txt")
    return Example(text, id=f"{folder}/{number}", label=LABELS.get(folder))


def nltk_sentences_of_class(archive: Path, short: str) -> Rows[Example]:
    """The sentences of the file of a class."""
    rows = read_archive_lines(archive, f"rt-polarity.{short}")
    return map_rows(
        rows, lambda row: Example(row.value.strip(), id=f"{short}/{row.line}", label=LABELS[short])
    )
