"""Reading explanations that were made elsewhere, from a file in any of the known formats."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raison.core import limits
from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.text_files import read_good_lines
from raison.studies.exchange.external_explanation import (
    ExternalExplanation,
    checked_scores,
    checked_selection,
)
from raison.studies.exchange.read_eraser import explanation_of_eraser
from raison.studies.exchange.read_inseq import read_inseq

__all__ = ["read_explanations"]


def read_explanations(
    path: str | os.PathLike[str], examples: Mapping[str, Example] | None = None
) -> list[ExternalExplanation]:
    """The explanations of a file; the `examples` by id are needed where the file has no texts (ERASER)."""
    file = Path(path)
    if file.suffix == ".json":
        explanations = list(read_inseq(file))
    elif file.suffix == ".jsonl":
        explanations = read_json_lines(file, examples or {})
    else:
        raise InputError(
            f"Explanations are read from a .jsonl or .json file, not from {file.name!r}."
        )
    if not explanations:
        raise InputError(f"{str(file)!r} holds no explanation: name a file that does.")
    return explanations


def read_json_lines(file: Path, examples: Mapping[str, Example]) -> list[ExternalExplanation]:
    """One explanation from each line; the first that is none is named by its number."""
    explanations = []
    for number, line in enumerate(read_good_lines(file), 1):
        if not line.strip():
            continue
        try:
            explanations.append(explanation_of_record(limits.read_json_text(line), examples))
        except (InputError, ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, InputError):
                reason = str(error)
            else:
                reason = f"{type(error).__name__}: {error}"
            raise InputError(
                f"Line {number} of {file.name!r} is no explanation ({reason}): mend it."
            ) from None
    return explanations


def explanation_of_record(record: Any, examples: Mapping[str, Example]) -> ExternalExplanation:
    """A record with tokens and scores, or one of ERASER's."""
    if not isinstance(record, dict):
        raise InputError("not an object with fields")
    if "annotation_id" in record:
        return explanation_of_eraser(record, examples)

    tokens = tuple(str(token) for token in record["tokens"])
    scores = record.get("scores")
    name = record.get("id")
    text = record.get("text")
    explanation = ExternalExplanation(
        id="" if name is None else str(name),
        method=str(record.get("method", "elsewhere")),
        tokens=tokens,
        scores=None if scores is None else checked_scores(scores, len(tokens)),
        selected=checked_selection(record.get("selected"), len(tokens)),
        text=text,
        target=record.get("target"),
    )
    if text is not None and not isinstance(text, str):
        raise InputError(f"a text that is {type(text).__name__}")
    return explanation
