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
from raison.datasets.character_spans import Places, spans_of_marks
from raison.datasets.dataset_rows import Broken, Row, Rows
from raison.datasets.table import read_table_rows
from raison.datasets.text_files import find_file

COLUMNS = ("Sentiment", "Text", "batch_id")
TableRow = Row[dict[str, str]]


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
        for pair in counterfactual_pairs(
            read_table_rows(find_file(place, f"{split}_paired.tsv"), "\t")
        ):
            if isinstance(pair, Broken):
                yield pair
                continue

            original, edited = pair
            gold_of_original, gold_of_edited = words_changed_in_counterfactual(
                original.value["Text"], edited.value["Text"]
            )
            yield counterfactual_row(
                original,
                "original",
                other="edited",
                gold=gold_of_original,
            )
            yield counterfactual_row(
                edited,
                "edited",
                other="original",
                gold=gold_of_edited,
            )


def counterfactual_row(
    row: TableRow,
    role: str,
    *,
    other: str,
    gold: tuple[Span, ...],
) -> Row[Example] | Broken:
    """One text of a pair, with the id of the other."""
    number = row.value["batch_id"]
    try:
        example = Example(
            row.value["Text"],
            id=f"{number}/{role}",
            label=row.value["Sentiment"].lower() or None,
            gold=gold,
            meta={"role": role, "other": f"{number}/{other}"},
        )
    except InputError as error:
        return row.broken_by(error)
    return row.with_value(example)


def counterfactual_pairs(
    rows: Rows[dict[str, str]],
) -> Iterator[tuple[TableRow, TableRow] | Broken]:
    """Neighbours of the same number; a row without its partner is broken."""
    first: TableRow | None = None
    for row in rows:
        if isinstance(row, Broken):
            yield row
            continue
        missing = [name for name in COLUMNS if name not in row.value]
        if missing:
            yield row.broken(f"there is no column {missing[0]!r}")
            continue

        if first is None:
            first = row
        elif first.value["batch_id"] == row.value["batch_id"]:
            yield first, row
            first = None
        else:
            yield counterfactual_without_partner(first)
            first = row
    if first is not None:
        yield counterfactual_without_partner(first)


def counterfactual_without_partner(row: TableRow) -> Broken:
    """The broken record of a row whose partner is missing."""
    number = row.value["batch_id"]
    return row.broken(f"the other text of the pair {number!r} does not follow")


def words_changed_in_counterfactual(
    before: str, after: str
) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The words of either text that the other has not."""
    places_before = split_words(before)
    places_after = split_words(after)
    marks_before = [True] * len(places_before)
    marks_after = [True] * len(places_after)

    matcher = SequenceMatcher(
        None,
        spellings_in_counterfactual(before, places_before),
        spellings_in_counterfactual(after, places_after),
        autojunk=False,
    )
    for first_before, first_after, size in matcher.get_matching_blocks():
        for index in range(size):
            marks_before[first_before + index] = False
            marks_after[first_after + index] = False

    gold_before = spans_of_marks(places_before, marks_before, "text")
    gold_after = spans_of_marks(places_after, marks_after, "text")
    return gold_before, gold_after


def spellings_in_counterfactual(text: str, places: Places) -> list[str]:
    """The words at these places without their case."""
    return [text[start:end].lower() for start, end in places]
