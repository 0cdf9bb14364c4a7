"""AG News."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example
from raison.core.spec import one_of
from raison.datasets.base import Dataset, dataset
from raison.datasets.rows import Row, Rows, each, present
from raison.datasets.table import quoted

TOPICS = ("World", "Sports", "Business", "Sci/Tech")


@dataset("ag_news")
@dataclass(frozen=True)
class AgNews(Dataset):
    """News of four topics: the title and the first sentences.

    The test file has class, title and description in columns, classes from 1; the training file at hand is a subset
    with both texts in one column, classes from 0. Title and description are joined by a space in both.
    """

    task = "classification"
    splits = ("train", "test")
    folder = "ag_news"
    source = "https://github.com/mhjabreel/CharCnn_Keras"
    paper = "Zhang et al. 2015, Character-level Convolutional Networks for Text Classification"

    topics: tuple[str, ...] = TOPICS  # only these, and classes in this order: (World, Business)

    def __post_init__(self) -> None:
        chosen = tuple(getattr(topic, "name", topic) for topic in self.topics)  # bare words of a spec
        for topic in chosen:
            one_of("A topic", topic, TOPICS)
        if len(chosen) < 2:
            raise InputError("topics names at least two topics.")
        object.__setattr__(self, "topics", chosen)

    @property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.topics

    def rows(self, place: Path, split: str) -> Rows[Example]:
        if split == "test":
            rows = each(quoted(present(place, "test.csv"), 3), lambda row: example(row, row.value[0], 1, row.value[1:]))
        else:
            path = present(place, "train_subset5000.csv")
            rows = each(quoted(path, 2), lambda row: example(row, row.value[1], 0, row.value[:1]))
        return (row for row in rows if not isinstance(row, Row) or row.value.label in self.topics)


def example(row: Row[list[str]], number: str, base: int, texts: list[str]) -> Example:
    if number not in [str(base + topic) for topic in range(len(TOPICS))]:
        raise InputError(f"the class {number!r} is no number from {base} to {base + len(TOPICS) - 1}.")
    return Example(" ".join(texts), id=str(row.line), label=TOPICS[int(number) - base])
