"""WikiText-2."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.parameters import check_choice
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.dataset_rows import Rows
from raison.datasets.prose import LEVELS, read_plain_text
from raison.datasets.text_files import find_file


@dataset("wikitext2")
@dataclass(frozen=True)
class Wikitext2(Dataset):
    """Articles of Wikipedia, tokenized, with rare words as <unk>; a paragraph or title in each example."""

    task = "text"
    splits = ("valid", "test")
    folder = "wikitext2"
    source = "https://github.com/pytorch/examples"
    paper = "Merity et al. 2017, Pointer Sentinel Mixture Models"
    labelled = False

    level: str = "line"  # line: a paragraph or title; passage: what stands between blank lines; file: all of it

    def __post_init__(self) -> None:
        check_choice("level", self.level, LEVELS)

    def rows(self, place: Path, split: str) -> Rows[Example]:
        return read_plain_text(find_file(place, f"{split}.txt"), self.level)
