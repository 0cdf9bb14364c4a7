"""Commonsense questions with the words that people pointed to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from raison.core import limits
from raison.core.documents import Document, noted
from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.rows import Row, Rows, each, present
from raison.datasets.spans import marked, tokens
from raison.datasets.table import named

LETTERS = ("A", "B", "C", "D", "E")


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
        return each(named(present(place, f"{split}.csv")), example)


def example(row: Row[dict[str, str]]) -> Example:
    try:
        number, text, label = (row.value[name] for name in ("id", "text", "classification"))
        marks, query = limits.from_json(row.value["rationale"]), row.value["query"]
    except KeyError as error:
        raise InputError(f"there is no column {error}.") from None
    except json.JSONDecodeError as error:
        raise InputError(f"the rationale is no list of 0 and 1 ({error}).") from None
    choices = [choice.strip() for choice in query.split("[SEP]")]
    if len(choices) != len(LETTERS) or not isinstance(marks, list):
        raise InputError(f"there are {len(choices)} choices, not {len(LETTERS)}, or the rationale is no list.")
    shown = " ".join(f"{letter}) {choice}" for letter, choice in zip(LETTERS, choices, strict=True))
    gold = marked(tokens(text), marks, "first")
    question = Document(number, 0, 0, len(text))  # in ERASER's CoS-E the question is the document
    return Example(
        text, shown, id=number, label=label or None, gold=gold, meta={"choices": choices, **noted([question])}
    )
