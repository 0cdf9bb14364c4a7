"""A thousand texts each of eight sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.parameters import check_choice
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.dataset_rows import Row, Rows, map_rows
from raison.datasets.sources.ag_news import TOPICS
from raison.datasets.table import read_plain_columns
from raison.datasets.text_files import find_file

RELATIONS = ("entailment", "neutral", "contradiction")
PAIRS = ("snli", "mnli", "mnli_matched", "mnli_mismatched")
CORPORA = ("imdb", "yelp", "ag", "mr", *PAIRS)


@dataset("textfooler_1k")
@dataclass(frozen=True)
class Textfooler(Dataset):
    """A thousand texts each of IMDB, Yelp, AG News, MR, SNLI and MNLI, tokenized, as TextFooler attacked them.

    Quotes around a text and \\n inside it stand in the published files and are kept. The file `mnli` holds the texts of
    `mnli_mismatched` with numbers for labels.
    """

    task = "classification"
    splits = ("test",)
    folder = "textfooler_1k"
    source = "https://github.com/jind11/TextFooler"
    paper = "Jin et al. 2020, Is BERT Really Robust?"
    labels = negative_positive

    corpus: str = "imdb"  # imdb, yelp, ag, mr, snli, mnli, mnli_matched or mnli_mismatched

    def __post_init__(self) -> None:
        check_choice("corpus", self.corpus, CORPORA)
        if self.corpus in PAIRS:
            self.set_facts(task="pair", labels=RELATIONS)
        elif self.corpus == "ag":
            self.set_facts(labels=TOPICS)

    def rows(self, place: Path, split: str) -> Rows[Example]:
        path = find_file(place, f"{self.corpus}.txt", self.corpus)
        if self.task == "pair":
            return map_rows(read_plain_columns(path, 3, "\t"), self.labelled_example)
        return map_rows(read_plain_columns(path, 2, " "), self.labelled_example)

    def labelled_example(self, row: Row[list[str]]) -> Example:
        """The example of a label, a text and perhaps another."""
        label, first, *second = row.value
        name = self.label_of(label)
        pair = None
        if second:
            pair = second[0].strip()
        return Example(
            first.strip(),
            pair,
            id=str(row.line),
            label=name,
        )

    def label_of(self, written: str) -> str:
        """A class by its name or its number."""
        for number, name in enumerate(self.labels):
            if written in (name, str(number)):
                return name
        known = ", ".join(self.labels)
        raise InputError(f"the label {written!r} is none of {known}.")
