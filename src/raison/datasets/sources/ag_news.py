"""AG News."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.parameters import check_choice
from raison.core.records import Example
from raison.core.spec import Spec
from raison.datasets.base import Dataset, dataset
from raison.datasets.dataset_rows import Row, Rows, filter_rows, map_rows
from raison.datasets.table import read_csv
from raison.datasets.text_files import find_file

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
    labels = TOPICS
    paper = "Zhang et al. 2015, Character-level Convolutional Networks for Text Classification"

    topics: tuple[str, ...] = TOPICS  # only these, and classes in this order: (World, Business)

    def __post_init__(self) -> None:
        topics = tuple(topic.name if isinstance(topic, Spec) else topic for topic in self.topics)
        for topic in topics:
            check_choice("A topic", topic, TOPICS)
        if len(topics) < 2:
            raise InputError("topics names at least two topics.")
        self.set_facts(topics=topics, labels=topics)

    def rows(self, place: Path, split: str) -> Rows[Example]:
        if split == "test":
            rows = map_rows(read_csv(find_file(place, "test.csv"), 3), ag_news_test_example)
        else:
            rows = map_rows(
                read_csv(find_file(place, "train_subset5000.csv"), 2), ag_news_training_example
            )
        return filter_rows(rows, lambda example: example.label in self.topics)


def ag_news_test_example(row: Row[list[str]]) -> Example:
    """An example of class, title and description."""
    number, title, description = row.value
    return Example(f"{title} {description}", id=str(row.line), label=ag_news_topic(number, first=1))


def ag_news_training_example(row: Row[list[str]]) -> Example:
    """An example of a text and its class."""
    text, number = row.value
    return Example(text, id=str(row.line), label=ag_news_topic(number, first=0))


def ag_news_topic(number: str, *, first: int) -> str:
    """The topic of a class, whose numbers begin with `first`."""
    topics = {str(index): topic for index, topic in enumerate(TOPICS, first)}
    if number not in topics:
        *_, last = topics
        raise InputError(f"the class {number!r} is no number from {first} to {last}.")
    return topics[number]
