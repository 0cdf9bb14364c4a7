"""Reading ERASER's records of rationales, and those that raison writes in this form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raison.core.eraser_documents import Document, named_documents, spans_of_eraser_tokens
from raison.core.errors import InputError
from raison.core.records import Example
from raison.studies.exchange.external_explanation import (
    ExternalExplanation,
    WrittenUnits,
    checked_scores,
    checked_selection,
)

__all__ = ["HARD", "SOFT", "document_of_single_rationale", "explanation_of_eraser"]

SOFT = "soft_rationale_predictions"  # ERASER's names: a score for each token,
HARD = "hard_rationale_predictions"  # and ranges of tokens that were selected

EraserRationale = Mapping[str, Any]  # as the JSON has it


@dataclass(frozen=True)
class DocumentTokens:
    """The tokens of one document, with what a rationale says of them."""

    tokens: list[str]
    scores: np.ndarray | None  # [k]
    selected: np.ndarray | None  # [k]


def explanation_of_eraser(
    record: Mapping[str, Any], examples: Mapping[str, Example]
) -> ExternalExplanation:
    """Rationales over the tokens of documents: hard ones as ranges, soft ones as a score each.

    The documents of an ERASER set are known by their names. Elsewhere a pair has one rationale for each text, or one
    for that in which people marked words: the other is only a question about it, or its choices.
    """
    name = str(record["annotation_id"])
    if name not in examples:
        where = "the data set has" if examples else "without a data set there is"
        raise InputError(f"{where} no text called {name!r}")
    example = examples[name]
    rationales = record["rationales"]
    texts = [example.text]
    if example.pair is not None:
        texts.append(example.pair)

    about = None
    documents = named_documents(example)
    if documents:
        if example.pair is not None:
            about = documents[0].segment
        parts = eraser_tokens_of_named_documents(rationales, documents, texts)
    else:
        if len(rationales) not in (1, len(texts)):
            raise InputError(f"{len(rationales)} documents, where {len(texts)} are explained")
        if len(rationales) < len(texts):
            about = document_of_single_rationale(example)
            texts = [texts[about]]
        parts = []
        for rationale, text in zip(rationales, texts, strict=True):
            parts.append(eraser_tokens_of_document(rationale, text))

    tokens: list[str] = []
    for part in parts:
        tokens += part.tokens
    explanation = ExternalExplanation(
        id=name,
        method=str(record.get("method", "elsewhere")),
        tokens=tuple(tokens),
        scores=concatenate_eraser_arrays([part.scores for part in parts]),
        selected=concatenate_eraser_arrays([part.selected for part in parts]),
        target=record.get("classification", record.get("target")),
        about=about,
    )
    if "units" in record:
        return with_written_eraser_units(explanation, record["units"])
    return explanation


def concatenate_eraser_arrays(arrays: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """The arrays of all documents one after the other; None where one of them is missing."""
    known = [array for array in arrays if array is not None]
    if len(known) < len(arrays):
        return None
    return np.concatenate(known)


def eraser_tokens_of_named_documents(
    rationales: Sequence[EraserRationale], documents: Sequence[Document], texts: Sequence[str]
) -> list[DocumentTokens]:
    """One part for each document in the order of the text, whatever the order in the file.

    A document without a rationale has nothing selected in it, and scores of 0. A single rationale without the name of a
    document is that of the only one.
    """
    names = [document.name for document in documents]
    default_name = names[0] if len(names) == 1 else None
    by_name: dict[str, EraserRationale] = {}
    for rationale in rationales:
        name = rationale.get("docid", default_name)
        if name in by_name:
            raise InputError(f"two rationales of the document {name!r}")
        if name not in names:
            known = ", ".join(names)
            raise InputError(f"a rationale of the document {name!r}, where the text has {known}")
        by_name[name] = rationale

    given_kinds = []
    for kind in (SOFT, HARD):
        if all(rationale.get(kind) is not None for rationale in by_name.values()):
            given_kinds.append(kind)

    parts = []
    for document in documents:
        text = texts[document.segment][document.start : document.end]
        rationale = by_name.get(document.name) or empty_rationale(given_kinds, text)
        parts.append(eraser_tokens_of_document(rationale, text))
    return parts


def empty_rationale(kinds: Sequence[str], text: str) -> EraserRationale:
    """The rationale of a document in which nothing was selected."""
    rationale: dict[str, Sequence[float]] = {}
    if SOFT in kinds:
        rationale[SOFT] = [0.0] * len(spans_of_eraser_tokens(text))
    if HARD in kinds:
        rationale[HARD] = []
    return rationale


def document_of_single_rationale(example: Example) -> int:
    """Which text of a pair is the document of a single rationale: that with gold, else the second."""
    in_second = [span.segment in ("second", "context") for span in example.gold]
    if in_second and not any(in_second):
        return 0
    return 1


def with_written_eraser_units(
    explanation: ExternalExplanation, stored: Mapping[str, Any]
) -> ExternalExplanation:
    """The explanation with the units that raison wrote: white-space tokens alone would not give their scores back."""
    spans = []
    for segment, start, end in stored["spans"]:
        spans.append((int(segment), int(start), int(end)))
    units = WrittenUnits(
        spans=tuple(spans),
        scores=checked_scores(stored["scores"], len(spans)),
        selected=checked_selection(stored.get("selected"), len(spans)),
    )
    return replace(explanation, written=units)


def eraser_tokens_of_document(rationale: EraserRationale, text: str) -> DocumentTokens:
    """The tokens of one document, their scores and which of them are selected."""
    tokens = []
    for start, end in spans_of_eraser_tokens(text):
        tokens.append(text[start:end])
    soft = rationale.get(SOFT)
    hard = rationale.get(HARD)
    selected = None
    if hard is not None:
        selected = selected_by_eraser_ranges(hard, len(tokens))
    scores = None
    if soft is not None:
        scores = checked_scores(soft, len(tokens))
    return DocumentTokens(tokens=tokens, selected=selected, scores=scores)


def selected_by_eraser_ranges(ranges: Sequence[Mapping[str, int]], count: int) -> np.ndarray:
    """[count] True for the tokens of the ranges."""
    selected = np.zeros(count, bool)
    for span in ranges:
        start = span["start_token"]
        end = span["end_token"]
        if not 0 <= start < end <= count:
            raise InputError(f"the tokens {start}..{end} of a text of {count}")
        selected[start:end] = True
    return selected
