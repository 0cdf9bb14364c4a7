"""Multi30k."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.records import Example
from raison.core.spec import one_of
from raison.datasets.base import Dataset, dataset
from raison.datasets.parallel import side_by_side
from raison.datasets.rows import Rows, each, lines, present

FILES = {
    "train": "train",
    "val": "val",
    "test": "test_2016_flickr",
    "test_2017": "test_2017_flickr",
    "test_2017_mscoco": "test_2017_mscoco",
    "test_2018": "test_2018_flickr",
}


@dataset("multi30k_deen")
@dataclass(frozen=True)
class Multi30k(Dataset):
    """Descriptions of images in German and English; the translation is the label."""

    task = "seq2seq"
    splits = tuple(FILES)
    folder = "multi30k_deen"
    source = "https://github.com/multi30k/dataset"
    paper = "Elliott et al. 2016, Multi30K: Multilingual English-German Image Descriptions"

    to: str = "en"  # the language of the label: en or de

    def __post_init__(self) -> None:
        one_of("to", self.to, ("en", "de"))

    def rows(self, place: Path, split: str) -> Rows[Example]:
        languages = ("de", "en") if self.to == "en" else ("en", "de")
        files = [lines(present(place, f"{FILES[split]}.{language}")) for language in languages]
        return each(
            side_by_side(*files),
            lambda row: Example(row.value[0], id=str(row.line), label=row.value[1].strip() or None),
        )
