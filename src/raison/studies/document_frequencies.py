"""Document frequencies of words (idf), counted from texts: the table that the method `idf` reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from raison.core.artifact import Artifact
from raison.core.errors import InputError
from raison.core.parameters import check_integer
from raison.core.text_splitting import split_words
from raison.methods.idf import idf_entry

__all__ = ["fit_idf"]


def fit_idf(texts: Iterable[str], *, largest: int | None = None, corpus: str = "") -> Artifact:
    """Count in how many texts each word occurs, whatever its case, and keep the `largest` counts (all, by default).

    Words are split as everywhere in raison; among words of one count those of the alphabet's start stay, so that the
    same texts give the same table in whatever order they come. `corpus` is noted in the artifact.
    """
    if largest is not None:
        check_integer("largest", largest, 1)
    documents = 0
    counts: Counter[str] = Counter()
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"A text must be a string, not {type(text).__name__}.")
        words = set()
        for start, end in split_words(text):
            words.add(idf_entry(text[start:end]))
        if words:
            documents += 1
            counts.update(words)
    if not documents:
        raise InputError("There are no words to count: give at least one text.")

    by_count = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    largest_counts = dict(by_count[:largest])
    about = {"corpus": corpus, "words": len(largest_counts), "different words": len(counts)}
    return Artifact("idf", {"documents": documents, "counts": largest_counts}, about=about)
