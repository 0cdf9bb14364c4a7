"""The English Web Treebank."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.dataset_rows import Rows
from raison.datasets.text_files import find_file
from raison.datasets.treebank import TAGS, read_treebank


@dataset("ud_english_ewt")
@dataclass(frozen=True)
class UdEnglishEwt(Dataset):
    """English sentences from the web with parts of speech and dependency trees (Universal Dependencies)."""

    task = "tagging"
    splits = ("train", "dev", "test")
    folder = "ud_english_ewt"
    source = "https://github.com/UniversalDependencies/UD_English-EWT"
    paper = "Silveira et al. 2014, A Gold Standard Dependency Corpus for English"
    labels = TAGS

    def rows(self, place: Path, split: str) -> Rows[Example]:
        return read_treebank(find_file(place, f"en_ewt-ud-{split}.conllu"))
