"""Inverse document frequency: how rare a word is, a control that knows the language but not the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from math import log
from pathlib import Path
from typing import TypeGuard

import numpy as np

from raison.core.artifact import Artifact
from raison.core.errors import InputError
from raison.core.records import Encoding
from raison.core.text_splitting import split_words, stripped_span
from raison.methods.base import Answer, Batch, Method, method
from raison.models.protocol import Model

__all__ = ["Idf", "IdfTable", "idf_entry"]

SHIPPED = Path(__file__).parent / "shipped" / "idf.json"


@dataclass(frozen=True)
class IdfTable:
    """In how many of `documents` each word occurs."""

    documents: int
    counts: dict[str, int]  # by entry

    @classmethod
    def of(cls, artifact: Artifact, where: str) -> IdfTable:
        """The table of a file, if it is one."""
        documents = artifact.data.get("documents")
        counts = artifact.data.get("counts")
        if not is_positive_count(documents) or not isinstance(counts, dict):
            raise InputError(
                f"{where} holds no document frequencies: make it anew with `raison idf`."
            )
        for word, count in counts.items():
            if not is_positive_count(count) or count > documents:
                raise InputError(
                    f"{where} counts {word!r} in {count} of {documents} documents: make it anew with `raison idf`."
                )
        return cls(documents, counts)

    def idf(self, word: str) -> float:
        """ln((1 + documents) / (1 + documents with the word)): from 0 for a word of every document."""
        count = self.counts.get(idf_entry(word), 0)
        return log((1 + self.documents) / (1 + count))


def idf_entry(word: str) -> str:
    """Under which name a word is counted: in small letters, without the 's of a possessive."""
    plain = word.lower().replace("’", "'")
    return plain.removesuffix("'s") or plain


def read_idf_table(path: str | Path) -> tuple[IdfTable, str]:
    """The table of a file and the hash of its content."""
    artifact = Artifact.open(path, "idf")
    return IdfTable.of(artifact, repr(str(path))), artifact.content()


@cache
def shipped_idf_table() -> tuple[IdfTable, str]:
    """The table that comes with raison."""
    return read_idf_table(SHIPPED)


def is_positive_count(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number from 1 up."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


@method("idf")
@dataclass(frozen=True)
class Idf(Method):
    """How rare the words of a unit are: inverse document frequency.

    score_w = ln((1 + N) / (1 + n_w)), n_w of N documents having the word w (Spärck Jones 1972, smoothed so that a word
    of every document gets 0 and a word of none a finite score). Words are lower-cased and lose a possessive 's; a part
    of a word counts as the word, a larger unit as the mean over its tokens. The shipped table holds the 5,000 words
    that are in most of the paragraphs of WikiText-2 (validation and test); fit one from your own texts with
    `raison idf`.
    """

    # of `raison idf`; None: the shipped one
    table: str | None = field(default=None, metadata={"file": True})

    paper = "Spärck Jones 1972"
    signed = False
    axis = "token"
    pooling = "mean"

    def __post_init__(self) -> None:
        if self.table is not None and not (isinstance(self.table, str) and self.table):
            raise InputError(
                f"table is the path of a file made by `raison idf`, not {self.table!r}."
            )

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        if self.table is None:
            table, content = shipped_idf_table()
        else:
            table, content = read_idf_table(self.table)
        answers = []
        for encoding in batch.encodings:
            scores = idf_of_tokens(encoding, table)
            answers.append(Answer(scores, artifacts={"idf": content}))
        return answers


def idf_of_tokens(encoding: Encoding, table: IdfTable) -> np.ndarray:
    """[t] the rarest word that each token touches; special tokens have none and get 0."""
    scores = np.zeros(len(encoding))
    for segment, text in enumerate(encoding.texts):
        words = split_words(text)
        starts, ends = np.array(words, dtype=np.int64).reshape(-1, 2).T
        idf_of_word = [table.idf(text[start:end]) for start, end in words]
        in_text = (encoding.segment == segment) & (encoding.start >= 0)
        for t in np.flatnonzero(in_text):
            core = stripped_span(text, int(encoding.start[t]), int(encoding.end[t]))
            if core is None:
                continue
            core_start, core_end = core
            touched = np.flatnonzero((starts < core_end) & (core_start < ends))
            scores[t] = max((idf_of_word[word] for word in touched), default=0.0)
    return scores
