"""Hotel reviews with annotated rationales."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.parameters import check_choice
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.character_spans import find_tokens, spans_of_marks
from raison.datasets.dataset_rows import Row, Rows, map_rows
from raison.datasets.table import read_plain_columns
from raison.datasets.text_files import find_file
from raison.datasets.thresholds import examples_with_clear_scores, label_of_score

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
        check_choice("aspect", self.aspect, ASPECTS)

    def rows(self, place: Path, split: str) -> Rows[Example]:
        name = f"hotel_{self.aspect.capitalize()}"
        if split == "test":
            path = find_file(place, f"target/{name}.train", f"annotations/{name}.train")
            rows = map_rows(read_plain_columns(path, 4), self.annotated_example)
        else:
            path = find_file(place, f"oracle/{name}.{split}", f"{name}.{split}")
            rows = map_rows(read_plain_columns(path, 3), self.scored_example)

        balanced = self.balanced and split == "train"
        return examples_with_clear_scores(rows, self.labels, balanced=balanced)

    def scored_example(self, row: Row[list[str]]) -> Example | None:
        """An example; None for the names of the columns, and where the aspect is neither good nor bad."""
        if row.line == 1:
            return None
        _, score, text = row.value
        label = label_of_score(score, self.labels)
        if label is None:
            return None
        return Example(text, id=str(row.line), label=label)

    def annotated_example(self, row: Row[list[str]]) -> Example | None:
        """An example with its rationale; None also where nothing is marked."""
        if row.line == 1:
            return None
        _, score, text, written = row.value
        label = label_of_score(score, self.labels)

        marks = written.split()
        strange = set(marks) - {"0", "1"}
        if strange:
            least = min(strange)
            raise InputError(f"the marks of words are 0 and 1, not {least!r}.")
        numbers = list(map(int, marks))
        gold = spans_of_marks(find_tokens(text), numbers, "text")

        if label is None or not gold:
            return None
        return Example(
            text,
            id=str(row.line),
            label=label,
            gold=gold,
        )
