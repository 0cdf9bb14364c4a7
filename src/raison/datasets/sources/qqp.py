"""Quora question pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.dataset_rows import Row, Rows, map_rows
from raison.datasets.table import read_plain_columns, unquote_csv_cell
from raison.datasets.text_files import find_file

LABELS = ("not_duplicate", "duplicate")


@dataset("qqp")
@dataclass(frozen=True)
class Qqp(Dataset):
    """Pairs of questions asked on Quora, which mean the same or not.

    The published files hold a few broken characters; they are read as U+FFFD and counted as mended.
    """

    task = "pair"
    splits = ("dev", "test")
    folder = "qqp"
    source = "https://github.com/Deep1994/Quora-Question-Pairs-dataset-analysis-and-construction"
    paper = "Iyer et al. 2017, First Quora Dataset Release; Wang et al. 2017 (partition)"
    labels = LABELS

    def rows(self, place: Path, split: str) -> Rows[Example]:
        return map_rows(
            read_plain_columns(find_file(place, f"{split}.tsv"), 4, other="replace"), pair_example
        )


def pair_example(row: Row[list[str]]) -> Example:
    """The example of a class, two questions and a number."""
    label, first, second, number = row.value
    if label not in ("0", "1"):
        raise InputError(f"the label {label!r} is neither 0 nor 1.")
    return Example(
        unquote_csv_cell(first),
        unquote_csv_cell(second),
        id=number,
        label=LABELS[int(label)],
    )
