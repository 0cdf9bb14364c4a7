"""Two of the twenty newsgroups: baseball and hockey."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example
from raison.core.spec import one_of
from raison.datasets.archive import texts
from raison.datasets.base import Dataset, dataset
from raison.datasets.rows import Row, Rows, each, present

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
        one_of("part", self.part, ("post", "body"))

    def rows(self, place: Path, split: str) -> Rows[Example]:
        archive = present(place, "20news-bydate-sport.tar.gz", "20news-bydate.tar.gz", "20news-bydate")
        inside = f"20news-bydate-{split}/"
        wanted = (row for row in texts(archive, other="latin-1") if not isinstance(row, Row) or self.is_in(row, inside))
        return each(wanted, self.example)

    def is_in(self, row: Row[tuple[str, str]], inside: str) -> bool:
        parts = row.value[0].split("/")
        return inside in f"{row.value[0]}/" and len(parts) > 1 and parts[-2] in GROUPS

    def example(self, row: Row[tuple[str, str]]) -> Example:
        name, post = row.value
        group, number = name.split("/")[-2:]
        text = post if self.part == "post" else post.partition("\n\n")[2]
        if not text.strip():
            raise InputError("the post has no body.")
        return Example(text, id=f"{GROUPS[group]}/{number}", label=GROUPS[group])
