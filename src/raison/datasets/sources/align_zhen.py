"""Chinese-English sentences with word alignments."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example
from raison.core.spec import whole
from raison.datasets.base import Dataset, dataset
from raison.datasets.parallel import aligned, links, side_by_side
from raison.datasets.rows import Row, Rows, each, lines, present


@dataset("align_zhen")
@dataclass(frozen=True)
class AlignZhEn(Dataset):
    """Chinese news sentences, cut into words, with English translations and gold word alignments, sure and possible."""

    task = "seq2seq"
    splits = ("test",)
    folder = "align_zhen"
    source = "https://github.com/neulab/awesome-align"
    paper = "Liu and Sun 2015, Contrastive Unsupervised Word Alignment; collected by Dou and Neubig 2021"

    spaces: bool = True  # False: Chinese without spaces between its words, as it is printed
    skip: int = 0  # sentences at the start to leave out: they test a model that was trained on the rest

    def __post_init__(self) -> None:
        whole("skip", self.skip, 0)

    def rows(self, place: Path, split: str) -> Rows[Example]:
        files = [lines(present(place, name)) for name in ("zhen.src-tgt", "zhen.gold")]
        return each(islice(side_by_side(*files), self.skip, None), self.example)

    def example(self, row: Row[tuple[str, ...]]) -> Example:
        both, written = row.value
        source, between, target = both.partition("|||")
        if not between:
            raise InputError("no ||| stands between the two sentences.")
        text, words = spaced(source.split(), self.spaces)
        return aligned(text, target.strip(), links(written, 1), id=str(row.line), source_words=words)


def spaced(words: list[str], spaces: bool) -> tuple[str, list[tuple[int, int]]]:
    """The words as a text; two words of Latin letters or digits are kept apart in any case."""
    text = ""
    places = []
    for word in words:
        latin = text[-1:].isascii() and text[-1:].isalnum() and word[0].isascii() and word[0].isalnum()
        if text and (spaces or latin):
            text += " "
        places.append((len(text), len(text) + len(word)))
        text += word
    return text, places
