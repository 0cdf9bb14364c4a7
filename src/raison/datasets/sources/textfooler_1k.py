"""A thousand texts each of eight sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example
from raison.core.spec import one_of
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.rows import Row, Rows, each, present
from raison.datasets.sources.ag_news import TOPICS
from raison.datasets.table import columns

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

    splits = ("test",)
    folder = "textfooler_1k"
    source = "https://github.com/jind11/TextFooler"
    paper = "Jin et al. 2020, Is BERT Really Robust?"

    corpus: str = "imdb"  # imdb, yelp, ag, mr, snli, mnli, mnli_matched or mnli_mismatched

    def __post_init__(self) -> None:
        one_of("corpus", self.corpus, CORPORA)

    @property
    def task(self) -> str:  # type: ignore[override]
        return "pair" if self.corpus in PAIRS else "classification"

    @property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        if self.corpus in PAIRS:
            return RELATIONS
        return TOPICS if self.corpus == "ag" else negative_positive

    def rows(self, place: Path, split: str) -> Rows[Example]:
        path = present(place, f"{self.corpus}.txt", self.corpus)
        pair = self.task == "pair"
        return each(columns(path, 3 if pair else 2, "\t" if pair else " "), self.example)

    def example(self, row: Row[list[str]]) -> Example:
        label, first, *second = row.value
        names = {**{name: name for name in self.labels}, **{str(n): name for n, name in enumerate(self.labels)}}
        if label not in names:
            raise InputError(f"the label {label!r} is none of {', '.join(self.labels)}.")
        pair = second[0].strip() if second else None
        return Example(first.strip(), pair, id=str(row.line), label=names[label])
