"""Word analogies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.dataset_rows import Broken, Row, Rows, map_rows
from raison.datasets.text_files import find_file, read_lines


@dataset("analogies")
@dataclass(frozen=True)
class Analogies(Dataset):
    """Four words a : b = c : d in fourteen relations; d is to be found.

    The text is "a b c". `meta["relation"]` names the relation, `meta["words"]` holds the four words.
    """

    task = "causal"
    splits = ("test",)
    folder = "analogies"
    source = "https://github.com/tmikolov/word2vec"
    paper = "Mikolov et al. 2013, Efficient Estimation of Word Representations in Vector Space"

    def rows(self, place: Path, split: str) -> Rows[Example]:
        return map_rows(analogies_with_relation(place), analogy_example)


def analogies_with_relation(place: Path) -> Rows[tuple[str, str]]:
    """Lines with the relation whose title stands above them."""
    relation = ""
    for row in read_lines(find_file(place, "questions-words.txt")):
        if isinstance(row, Broken):
            yield row
        elif row.value.startswith(":"):
            relation = row.value[1:].strip()
        else:
            yield row.with_value((relation, row.value))


def analogy_example(row: Row[tuple[str, str]]) -> Example:
    """The first three words, which ask for the fourth."""
    relation, line = row.value
    words = line.split()
    if not relation:
        raise InputError("no relation is named before it.")
    if len(words) != 4:
        raise InputError(f"the line has {len(words)} words, not 4.")

    *question, answer = words
    return Example(
        " ".join(question),
        id=str(row.line),
        target=f" {answer}",
        label=answer,
        meta={"relation": relation, "words": words},
    )
