"""Shakespeare."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.parameters import check_choice
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.dataset_rows import Rows
from raison.datasets.prose import LEVELS, read_plain_text
from raison.datasets.text_files import find_file


@dataset("tinyshakespeare")
@dataclass(frozen=True)
class TinyShakespeare(Dataset):
    """Plays by Shakespeare as plain text, a speech in each example."""

    task = "text"
    splits = ("all",)
    folder = "tinyshakespeare"
    source = "https://github.com/pytorch/examples"
    paper = "Karpathy 2015, The Unreasonable Effectiveness of Recurrent Neural Networks"
    labelled = False

    level: str = "passage"  # passage: what stands between blank lines; line; file: all of it

    def __post_init__(self) -> None:
        check_choice("level", self.level, LEVELS)

    def rows(self, place: Path, split: str) -> Rows[Example]:
        return read_plain_text(find_file(place, "input.txt"), self.level)
