"""Two of the twenty newsgroups: baseball and hockey."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.parameters import check_choice
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.dataset_rows import Row, Rows, filter_rows, map_rows
from raison.datasets.text_archives import read_archive_texts
from raison.datasets.text_files import find_file

GROUPS = {"rec.sport.baseball": "baseball", "rec.sport.hockey": "hockey"}


@dataset("news_sport")
@dataclass(frozen=True)
class NewsSport(Dataset):
    """Posts about baseball and hockey from the 20 Newsgroups, split by date.

    The published posts begin with headers that name senders and subjects; `part=body` leaves them out, which makes the
    task harder and two posts of the training part empty (broken).
    """

    task = "classification"
    splits = ("train", "test")
    folder = "20news_sport"
    source = "http://qwone.com/~jason/20Newsgroups"
    paper = "Lang 1995, NewsWeeder"
    labels = tuple(GROUPS.values())
    blocks = True

    part: str = "post"  # post: with its headers; body: what follows the first blank line

    def __post_init__(self) -> None:
        check_choice("part", self.part, ("post", "body"))

    def rows(self, place: Path, split: str) -> Rows[Example]:
        archive = find_file(
            place, "20news-bydate-sport.tar.gz", "20news-bydate.tar.gz", "20news-bydate"
        )
        folder = f"20news-bydate-{split}/"
        posts = filter_rows(
            read_archive_texts(archive, other="latin-1"),
            lambda file: folder in f"{file[0]}/" and is_of_newsgroup(file[0]),
        )
        return map_rows(posts, self.post_example)

    def post_example(self, row: Row[tuple[str, str]]) -> Example:
        """The example of a post, whose file is named by a number, in the folder of its group."""
        name, text = row.value
        folder, number = name.split("/")[-2:]
        group = GROUPS[folder]

        if self.part == "body":
            _, _, text = text.partition("\n\n")
        if not text.strip():
            raise InputError("the post has no body.")
        return Example(text, id=f"{group}/{number}", label=group)


def is_of_newsgroup(name: str) -> bool:
    """Whether a file stands in the folder of a group."""
    parts = name.split("/")
    return len(parts) > 1 and parts[-2] in GROUPS
