"""Commonsense questions with the words that people pointed to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from raison.core import limits
from raison.core.eraser_documents import Document, documents_in_meta
from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.character_spans import find_tokens, spans_of_marks
from raison.datasets.dataset_rows import Row, Rows, map_rows
from raison.datasets.table import read_table_rows
from raison.datasets.text_files import find_file

LETTERS = ("A", "B", "C", "D", "E")
COLUMNS = ("id", "text", "classification", "rationale", "query")


@dataset("eraser_cose")
@dataclass(frozen=True)
class EraserCose(Dataset):
    """Commonsense questions with five choices and the words of the question that justify the answer (ERASER).

    The question is the first text, the lettered choices ("A) here B) there ...") are the second; `meta["choices"]`
    holds them one by one. The published counts differ a little from the paper's.
    """

    task = "pair"
    splits = ("train", "val", "test")
    folder = "eraser_cose"
    source = "https://github.com/shaggyday/evaluating-human-rationales"
    paper = "Rajani et al. 2019, Explain Yourself!; DeYoung et al. 2020, ERASER"
    labels = LETTERS
    gold = True

    def rows(self, place: Path, split: str) -> Rows[Example]:
        return map_rows(read_table_rows(find_file(place, f"{split}.csv")), question_example)


def question_example(row: Row[dict[str, str]]) -> Example:
    """A question with its choices; the rationale is a list of 0 and 1 for its words."""
    missing = [name for name in COLUMNS if name not in row.value]
    if missing:
        raise InputError(f"there is no column {missing[0]!r}.")
    id, text, label, rationale, query = (row.value[name] for name in COLUMNS)

    try:
        marks = limits.read_json_text(rationale)
    except json.JSONDecodeError as error:
        raise InputError(f"the rationale is no list of 0 and 1 ({error}).") from None
    choices = [choice.strip() for choice in query.split("[SEP]")]
    if len(choices) != len(LETTERS) or not isinstance(marks, list):
        raise InputError(
            f"there are {len(choices)} choices, not {len(LETTERS)}, or the rationale is no list."
        )

    pairs = zip(LETTERS, choices, strict=True)
    lettered = [f"{letter}) {choice}" for letter, choice in pairs]
    question = Document(
        id, segment=0, start=0, end=len(text)
    )  # in ERASER's CoS-E the question is the document
    return Example(
        text,
        " ".join(lettered),
        id=id,
        label=label or None,
        gold=spans_of_marks(find_tokens(text), marks, "first"),
        meta={"choices": choices, **documents_in_meta([question])},
    )
