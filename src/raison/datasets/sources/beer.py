"""BeerAdvocate reviews with annotated rationales."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raison.core.errors import InputError
from raison.core.records import Example
from raison.core.spec import one_of
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.jsonl import objects, value_of
from raison.datasets.rows import Row, Rows, each, present
from raison.datasets.spans import joined, marked
from raison.datasets.table import columns
from raison.datasets.thresholds import as_many, decided, with_label

ASPECTS = ("appearance", "aroma", "palate")


@dataset("beer")
@dataclass(frozen=True)
class Beer(Dataset):
    """Reviews of beers; an aspect is positive from 0.6 on and negative up to 0.4, others are left out.

    Files as Lei et al. published them: `reviews.aspectN.train.txt` and `.heldout.txt` (five scores, a tab, the words),
    and `annotations.json`, a record of words `x`, scores `y` and token ranges of each aspect in each line. Test reviews
    without a marked word of the aspect are left out.
    """

    task = "classification"
    splits = ("train", "dev", "test")
    folder = "beer"
    source = "https://people.csail.mit.edu/taolei/beer"
    paper = "Lei et al. 2016, Rationalizing Neural Predictions; McAuley et al. 2012"
    labels = negative_positive
    gold = True

    aspect: str = "appearance"  # or aroma, palate
    balanced: bool = True  # training part: as many positive as negative reviews

    def __post_init__(self) -> None:
        one_of("aspect", self.aspect, ASPECTS)

    @property
    def number(self) -> int:
        return ASPECTS.index(self.aspect)

    def rows(self, place: Path, split: str) -> Rows[Example]:
        if split == "test":
            found = each(objects(present(place, "annotations.json")), self.annotated)
        else:
            name = {"train": "train", "dev": "heldout"}[split]
            found = each(columns(present(place, f"reviews.aspect{self.number}.{name}.txt"), 2), self.scored)
        clear = with_label(found)
        return as_many(clear, self.labels) if split == "train" and self.balanced else clear

    def scored(self, row: Row[list[str]]) -> Example | None:
        """An example; None where the aspect is neither good nor bad."""
        label = self.label(row.value[0].split())
        return None if label is None else Example(row.value[1], id=str(row.line), label=label)

    def annotated(self, row: Row[dict[str, Any]]) -> Example | None:
        record = row.value
        label = self.label(value_of(record, "y", list))
        ranges = value_of(record, str(self.number), list)
        words = [str(word) for word in value_of(record, "x", list)]
        chosen = [0] * len(words)
        for each_range in ranges:
            if not isinstance(each_range, list) or len(each_range) != 2 or not 0 <= each_range[0] <= each_range[1]:
                raise InputError(f"a range of marked words is two numbers, not {each_range!r}.")
            if each_range[1] > len(words):
                raise InputError(f"the range {each_range} ends behind the {len(words)} words.")
            chosen[each_range[0] : each_range[1]] = [1] * (each_range[1] - each_range[0])
        text, places = joined(words)
        gold = marked(places, chosen, "text")
        return Example(text, id=str(row.line), label=label, gold=gold) if label is not None and gold else None

    def label(self, scores: list[Any]) -> str | None:
        if len(scores) <= self.number:
            raise InputError(f"it has {len(scores)} scores, and that of {self.aspect} is the {self.number + 1}th.")
        return decided(scores[self.number], self.labels)
