"""XQuAD."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.parameters import check_choice
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.dataset_rows import Rows
from raison.datasets.squad import read_squad
from raison.datasets.text_files import find_file


@dataset("xquad")
@dataclass(frozen=True)
class Xquad(Dataset):
    """Questions about paragraphs of Wikipedia with the answer as a span, in English or German; the answer is gold."""

    task = "qa"
    splits = ("test",)
    folder = "xquad_en"
    source = "https://github.com/google-deepmind/xquad"
    paper = (
        "Artetxe et al. 2020, On the Cross-lingual Transferability of Monolingual Representations"
    )
    gold = True

    language: str = "en"  # en or de

    def __post_init__(self) -> None:
        check_choice("language", self.language, ("en", "de"))

    def rows(self, place: Path, split: str) -> Rows[Example]:
        return read_squad(find_file(place, f"xquad.{self.language}.json"))
