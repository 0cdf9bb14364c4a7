"""Multi30k."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.parameters import check_choice
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.dataset_rows import Row, Rows, map_rows
from raison.datasets.parallel import zip_parallel_rows
from raison.datasets.text_files import find_file, read_lines

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
        check_choice("to", self.to, ("en", "de"))

    def rows(self, place: Path, split: str) -> Rows[Example]:
        languages = ("de", "en") if self.to == "en" else ("en", "de")
        files = []
        for language in languages:
            path = find_file(place, f"{FILES[split]}.{language}")
            files.append(read_lines(path))
        return map_rows(zip_parallel_rows(*files), multi30k_example)


def multi30k_example(row: Row[tuple[str, ...]]) -> Example:
    """A description with its translation."""
    source, target = row.value
    return Example(source, id=str(row.line), label=target.strip() or None)
