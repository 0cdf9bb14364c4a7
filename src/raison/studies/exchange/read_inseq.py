"""Reading attributions that Inseq has saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from raison.core import limits
from raison.core.errors import InputError
from raison.datasets.text_files import read_good_lines
from raison.studies.exchange.external_explanation import ExternalExplanation, checked_scores

__all__ = ["read_inseq"]


def read_inseq(file: Path) -> Iterator[ExternalExplanation]:
    """Inseq's saved attributions: the mean over what was generated, on the source or on the prompt."""
    try:
        saved = limits.read_json_text("\n".join(read_good_lines(file)))
        sequences = saved["sequence_attributions"]
        about = saved.get("info") or {}
        method = str(about.get("attribution_method", "inseq"))
        for sequence in sequences:
            yield explanation_of_inseq_sequence(sequence, method)
    except InputError as error:
        raise InputError(
            f"{file.name!r} is no file of Inseq ({error}): save it with its own `save`."
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file.name!r} is no file of Inseq ({type(error).__name__}: {error}): save it with its own `save`."
        ) from None


def explanation_of_inseq_sequence(sequence: Mapping[str, Any], method: str) -> ExternalExplanation:
    """What Inseq says about one text."""
    prompt_end = int(sequence.get("attr_pos_start", 0) or 0)
    attributions = sequence.get("source_attributions")
    if attributions is not None:
        side = sequence["source"]
    else:
        side = sequence["target"][:prompt_end]
        attributions = sequence["target_attributions"]

    table = np.array(plain_inseq_array(attributions), dtype=np.float64)[: len(side)]
    while table.ndim > 2:  # several dimensions of an embedding: their length
        table = np.linalg.norm(table, axis=-1)
    known = np.nan_to_num(table)
    scores = known.mean(1) if known.ndim == 2 else known
    tokens = []
    for token in side:
        tokens.append(str(token["token"] if isinstance(token, dict) else token))
    return ExternalExplanation(
        id="", method=method, tokens=tuple(tokens), scores=checked_scores(scores, len(tokens))
    )


def plain_inseq_array(value: Any) -> Any:
    """Inseq may wrap an array as {"__ndarray__": [...]}."""
    if isinstance(value, dict) and "__ndarray__" in value:
        return value["__ndarray__"]
    return value
