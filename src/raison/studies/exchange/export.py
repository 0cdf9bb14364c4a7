"""Writing explanations for other tools: ERASER's JSONL, or a flat Parquet table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raison.core.eraser_documents import (
    ERASER_CLASSES,
    Document,
    documents_of,
    spans_of_eraser_tokens,
    units_of_eraser_tokens,
)
from raison.core.errors import InputError, MissingExtra
from raison.core.outputs import replacing
from raison.core.records import Example, Explanation
from raison.datasets.spans import true_runs
from raison.studies.exchange.read_eraser import HARD, SOFT

__all__ = ["Exporter"]


@dataclass
class Exporter:
    """Collects explanations and writes them at the end, in one go."""

    path: Path
    rows: list[tuple[Example, Explanation]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.path.suffix not in (".jsonl", ".parquet"):
            raise InputError(
                f"Explanations are exported to a .jsonl (ERASER) or .parquet file, not to {self.path.name!r}."
            )
        if self.path.suffix == ".parquet":
            import_arrow()

    def add(self, example: Example, explanation: Explanation) -> None:
        self.rows.append((example, explanation))

    def write(self) -> None:
        if self.path.suffix == ".parquet":
            self.write_parquet()
        else:
            self.write_eraser()

    def write_parquet(self) -> None:
        arrow, parquet = import_arrow()
        table = arrow.Table.from_pylist(
            [flat_row(example, explanation) for example, explanation in self.rows]
        )
        with replacing(self.path) as half:
            parquet.write_table(table, half)

    def write_eraser(self) -> None:
        lines = []
        for example, explanation in self.rows:
            record = eraser_record(example, explanation)
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
        with replacing(self.path) as half:
            half.write_text("".join(lines) or "\n", encoding="utf-8")


def import_arrow() -> tuple[Any, Any]:
    """pyarrow and pyarrow.parquet, which the extra `data` brings."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "data", "A Parquet file") from None
    return pyarrow, pyarrow.parquet


def flat_row(example: Example, explanation: Explanation) -> dict[str, Any]:
    """A flat row: what was explained, by what, and the scores of the units."""
    spans = explanation.units.spans
    segments = explanation.encoding.segments
    return {
        "id": example.id,
        "text": example.text,
        "pair": example.pair,
        "model": explanation.model,
        "method": explanation.method,
        "target": explanation.target.text,
        "removal": explanation.removal,
        "units": list(explanation.units.names),
        "start": [start for _, start, _ in spans],
        "end": [end for _, _, end in spans],
        "segment": [segments[segment] for segment, _, _ in spans],
        "scores": explanation.scores.tolist(),
        "selected": None if explanation.selected is None else explanation.selected.tolist(),
    }


def eraser_record(example: Example, explanation: Explanation) -> dict[str, Any]:
    """ERASER's record of a prediction: scores and chosen ranges over the tokens of each document.

    ERASER's scorer takes a class with the scores of the classes or neither, under the publisher's names.
    """
    documents = documents_of(example, explanation.encoding.segments)
    selected = None if explanation.selected is None else explanation.selected.astype(int).tolist()
    record = {
        "annotation_id": example.id,
        "method": explanation.method,
        "rationales": [eraser_rationale(document, explanation) for document in documents],
        "target": explanation.target.text,
        "units": {
            "spans": list(explanation.units.spans),
            "scores": explanation.scores.tolist(),
            "selected": selected,
        },
    }
    prediction = explanation.prediction
    if prediction is not None and prediction.top and prediction.probability is not None:
        names = example.meta.get(ERASER_CLASSES, {})
        record["classification"] = names.get(prediction.text, prediction.text)
        record["classification_scores"] = {
            names.get(name, name): score for name, score in prediction.top
        }
    return record


def eraser_rationale(document: Document, explanation: Explanation) -> dict[str, Any]:
    """The scores and chosen ranges of one document."""
    places = spans_of_eraser_tokens(explanation.encoding.texts[document.segment], document)
    units_by_token = units_of_eraser_tokens(document, places, explanation.units)
    soft = [largest(explanation.scores[units].tolist()) for units in units_by_token]
    rationale: dict[str, Any] = {"docid": document.name, SOFT: soft}
    if explanation.selected is not None:
        selected = [bool(explanation.selected[units].any()) for units in units_by_token]
        rationale[HARD] = [
            {"start_token": start, "end_token": end} for start, end in true_runs(selected)
        ]
    return rationale


def largest(scores: Sequence[float]) -> float:
    """The score that is furthest from 0; 0 where there is none."""
    return max(scores, key=abs, default=0.0)
