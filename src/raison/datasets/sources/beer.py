"""BeerAdvocate reviews with annotated rationales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.parameters import check_choice
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.character_spans import join_words, spans_of_marks
from raison.datasets.dataset_rows import Row, Rows, map_rows
from raison.datasets.json_files import Json, read_json_lines, required_json_field
from raison.datasets.table import read_plain_columns
from raison.datasets.text_files import find_file
from raison.datasets.thresholds import examples_with_clear_scores, label_of_score

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
        check_choice("aspect", self.aspect, ASPECTS)

    @property
    def number(self) -> int:
        """The place of the aspect among the scores."""
        return ASPECTS.index(self.aspect)

    def rows(self, place: Path, split: str) -> Rows[Example]:
        if split == "test":
            records = read_json_lines(find_file(place, "annotations.json"))
            rows = map_rows(records, self.annotated_example)
        else:
            part = "heldout" if split == "dev" else split
            path = find_file(place, f"reviews.aspect{self.number}.{part}.txt")
            rows = map_rows(read_plain_columns(path, 2), self.scored_example)

        balanced = self.balanced and split == "train"
        return examples_with_clear_scores(rows, self.labels, balanced=balanced)

    def scored_example(self, row: Row[list[str]]) -> Example | None:
        """An example without a rationale; None where the aspect is neither good nor bad."""
        scores, text = row.value
        label = self.label_of(scores.split())
        if label is None:
            return None
        return Example(text, id=str(row.line), label=label)

    def annotated_example(self, row: Row[Json]) -> Example | None:
        """An example with its rationale; None where the aspect is neither good nor bad, or nothing is marked."""
        record = row.value
        scores = required_json_field(record, "y", list)
        label = self.label_of(scores)
        ranges = required_json_field(record, str(self.number), list)
        words = list(map(str, required_json_field(record, "x", list)))

        text, places = join_words(words)
        marks = beer_marks_of_ranges(ranges, len(words))
        gold = spans_of_marks(places, marks, "text")
        if label is None or not gold:
            return None
        return Example(
            text,
            id=str(row.line),
            label=label,
            gold=gold,
        )

    def label_of(self, scores: Sequence[str | float]) -> str | None:
        """The label of the score of the aspect; None where it is neither good nor bad."""
        count = len(scores)
        number = self.number
        if count <= number:
            raise InputError(
                f"it has {count} scores, and that of {self.aspect} is the {number + 1}th."
            )
        return label_of_score(scores[number], self.labels)


def beer_marks_of_ranges(ranges: Sequence[object], size: int) -> list[bool]:
    """Whether each of `size` words is in a range."""
    marks = [False] * size
    for ends in ranges:
        if not isinstance(ends, list) or not is_range_in_beer_review(ends):
            raise InputError(f"a range of marked words is two numbers, not {ends!r}.")
        start, end = ends
        if end > size:
            raise InputError(f"the range {ends} ends behind the {size} words.")

        for index in range(start, end):
            marks[index] = True
    return marks


def is_range_in_beer_review(ends: list[int]) -> bool:
    """Whether these are the ends of a range, which may be empty."""
    return len(ends) == 2 and 0 <= ends[0] <= ends[1]
