"""Hotel reviews with annotated rationales."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example
from raison.core.spec import one_of
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.rows import Row, Rows, each, present
from raison.datasets.spans import marked, tokens
from raison.datasets.table import columns
from raison.datasets.thresholds import as_many, decided, with_label

ASPECTS = ("location", "service", "cleanliness")


@dataset("hotel")
@dataclass(frozen=True)
class Hotel(Dataset):
    """Reviews of hotels on one aspect, as Bao et al. published them.

    `oracle/hotel_Location.train` and `.dev` hold task, label and text between tabs; `target/hotel_Location.train`, the
    test part here, has a fourth column with 0 or 1 for each word. The first line of a file names the columns.
    """

    task = "classification"
    splits = ("train", "dev", "test")
    folder = "hotel"
    source = "https://github.com/YujiaBao/R2A"
    paper = "Bao et al. 2018, Deriving Machine Attention from Human Rationales; Wang et al. 2010"
    labels = negative_positive
    gold = True

    aspect: str = "location"  # or service, cleanliness
    balanced: bool = True  # training part: as many positive as negative reviews

    def __post_init__(self) -> None:
        one_of("aspect", self.aspect, ASPECTS)

    def rows(self, place: Path, split: str) -> Rows[Example]:
        name = f"hotel_{self.aspect.capitalize()}"
        if split == "test":
            path = present(place, f"target/{name}.train", f"annotations/{name}.train")
            found = each(columns(path, 4), self.annotated)
        else:
            found = each(columns(present(place, f"oracle/{name}.{split}", f"{name}.{split}"), 3), self.scored)
        clear = with_label(found)
        return as_many(clear, self.labels) if split == "train" and self.balanced else clear

    def scored(self, row: Row[list[str]]) -> Example | None:
        """An example; None for the names of the columns, and where the aspect is neither good nor bad."""
        if row.line == 1:
            return None
        label = decided(row.value[1], self.labels)
        return None if label is None else Example(row.value[2], id=str(row.line), label=label)

    def annotated(self, row: Row[list[str]]) -> Example | None:
        if row.line == 1:
            return None
        label, text, marks = decided(row.value[1], self.labels), row.value[2], row.value[3].split()
        if strange := set(marks) - {"0", "1"}:
            raise InputError(f"the marks of words are 0 and 1, not {min(strange)!r}.")
        gold = marked(tokens(text), [int(mark) for mark in marks], "text")
        return Example(text, id=str(row.line), label=label, gold=gold) if label is not None and gold else None
