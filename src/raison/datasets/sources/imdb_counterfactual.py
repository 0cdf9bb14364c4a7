"""Reviews and their edited opposites."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example, Span
from raison.core.text_splitting import split_words
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.rows import Broken, Row, Rows, present
from raison.datasets.spans import marked
from raison.datasets.table import named

COLUMNS = ("Sentiment", "Text", "batch_id")
Pair = tuple[Row[dict[str, str]], Row[dict[str, str]]]


@dataset("imdb_counterfactual")
@dataclass(frozen=True)
class ImdbCounterfactual(Dataset):
    """Movie reviews and the same reviews with as few words changed as turn their sentiment; the changed words are gold.

    Words are compared without their case by the longest common blocks (difflib); neighbours make one span. Where words
    were only added, the other text has nothing to mark there. Both texts of a pair are examples (`meta["role"]`), and
    `meta["other"]` is the id of the partner. Two published pairs hold the same text twice and have no gold.
    """

    task = "classification"
    splits = ("train", "dev", "test")
    folder = "imdb_counterfactual"
    source = "https://github.com/acmi-lab/counterfactually-augmented-data"
    paper = "Kaushik et al. 2020, Learning the Difference That Makes a Difference"
    labels = negative_positive
    gold = True

    def rows(self, place: Path, split: str) -> Rows[Example]:
        for found in pairs(named(present(place, f"{split}_paired.tsv"), "\t")):
            if isinstance(found, Broken):
                yield found
                continue
            texts = [row.value["Text"] for row in found]
            for row, role, other, gold in zip(
                found, ("original", "edited"), ("edited", "original"), changed(*texts), strict=True
            ):
                number, label = row.value["batch_id"], row.value["Sentiment"].lower() or None
                meta = {"role": role, "other": f"{number}/{other}"}
                try:
                    made = Example(row.value["Text"], id=f"{number}/{role}", label=label, gold=gold, meta=meta)
                except InputError as error:
                    yield Broken(row.file, row.line, str(error).rstrip("."))
                else:
                    yield Row(row.file, row.line, made, row.mended)


def pairs(rows: Rows[dict[str, str]]) -> Iterator[Pair | Broken]:
    """Neighbours of the same number; a row without its partner is broken."""
    first: Row[dict[str, str]] | None = None
    for row in rows:
        if isinstance(row, Broken):
            yield row
            continue
        if missing := [name for name in COLUMNS if name not in row.value]:
            yield Broken(row.file, row.line, f"there is no column {missing[0]!r}")
            continue
        if first is None:
            first = row
        elif first.value["batch_id"] == row.value["batch_id"]:
            yield first, row
            first = None
        else:
            yield alone(first)
            first = row
    if first is not None:
        yield alone(first)


def alone(row: Row[dict[str, str]]) -> Broken:
    return Broken(row.file, row.line, f"the other text of the pair {row.value['batch_id']!r} does not follow")


def changed(before: str, after: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The words of either text that the other has not."""
    places = [split_words(text) for text in (before, after)]
    spelt = [[text[a:b].lower() for a, b in where] for text, where in zip((before, after), places, strict=True)]
    kept = [[False] * len(where) for where in places]
    for block in SequenceMatcher(None, spelt[0], spelt[1], autojunk=False).get_matching_blocks():
        kept[0][block.a : block.a + block.size] = [True] * block.size
        kept[1][block.b : block.b + block.size] = [True] * block.size
    first, second = (marked(where, [not keep for keep in kept[side]], "text") for side, where in enumerate(places))
    return first, second
