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
from raison.core.json_record import JsonObject
from raison.core.outputs import replacing_output
from raison.core.records import Example, Explanation
from raison.datasets.character_spans import runs_of_true_marks
from raison.studies.exchange.read_eraser import HARD, SOFT

__all__ = ["ExplanationExporter"]


@dataclass
class ExplanationExporter:
    """Collects explanations and writes them at the end, in one go."""

    path: Path
    rows: list[tuple[Example, Explanation]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.path.suffix not in (".jsonl", ".parquet"):
            raise InputError(
                f"Explanations are exported to a .jsonl (ERASER) or .parquet file, not to {self.path.name!r}."
            )
        if self.path.suffix == ".parquet":
            import_arrow_for_export()

    def add(self, example: Example, explanation: Explanation) -> None:
        self.rows.append((example, explanation))

    def write(self) -> None:
        if self.path.suffix == ".parquet":
            self.write_parquet()
        else:
            self.write_eraser()

    def write_parquet(self) -> None:
        arrow, parquet = import_arrow_for_export()
        flat_rows = []
        for example, explanation in self.rows:
            flat_rows.append(flat_row(example, explanation))
        table = arrow.Table.from_pylist(flat_rows)
        with replacing_output(self.path) as half:
            parquet.write_table(table, half)

    def write_eraser(self) -> None:
        lines = []
        for example, explanation in self.rows:
            record = eraser_record(example, explanation)
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
        with replacing_output(self.path) as half:
            half.write_text("".join(lines) or "\n", encoding="utf-8")


def import_arrow_for_export() -> tuple[Any, Any]:
    """pyarrow and pyarrow.parquet, which the extra `data` brings."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "data", "A Parquet file") from None
    return pyarrow, pyarrow.parquet


def flat_row(example: Example, explanation: Explanation) -> JsonObject:
    """A flat row: what was explained, by what, and the scores of the units."""
    segments = explanation.encoding.segments
    starts, ends, names_of_segments = [], [], []
    for segment, start, end in explanation.units.spans:
        starts.append(start)
        ends.append(end)
        names_of_segments.append(segments[segment])
    return {
        "id": example.id,
        "text": example.text,
        "pair": example.pair,
        "model": explanation.model,
        "method": explanation.method,
        "target": explanation.target.text,
        "removal": explanation.removal,
        "units": list(explanation.units.names),
        "start": starts,
        "end": ends,
        "segment": names_of_segments,
        "scores": explanation.scores.tolist(),
        "selected": None if explanation.selected is None else explanation.selected.tolist(),
    }


def eraser_record(example: Example, explanation: Explanation) -> JsonObject:
    """ERASER's record of a prediction: scores and chosen ranges over the tokens of each document.

    ERASER's scorer takes a class with the scores of the classes or neither, under the publisher's names.
    """
    documents = documents_of(example, explanation.encoding.segments)
    selected = None if explanation.selected is None else explanation.selected.astype(int).tolist()
    rationales = []
    for document in documents:
        rationales.append(eraser_rationale(document, explanation))
    record = {
        "annotation_id": example.id,
        "method": explanation.method,
        "rationales": rationales,
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
        scores_by_name = {}
        for name, score in prediction.top:
            scores_by_name[names.get(name, name)] = score
        record["classification_scores"] = scores_by_name
    return record


def eraser_rationale(document: Document, explanation: Explanation) -> JsonObject:
    """The scores and chosen ranges of one document."""
    places = spans_of_eraser_tokens(explanation.encoding.texts[document.segment], document)
    units_by_token = units_of_eraser_tokens(document, places, explanation.units)
    soft = []
    for units in units_by_token:
        soft.append(largest_exported_score(explanation.scores[units].tolist()))
    rationale: JsonObject = {"docid": document.name, SOFT: soft}
    if explanation.selected is not None:
        selected = []
        for units in units_by_token:
            selected.append(bool(explanation.selected[units].any()))
        hard = []
        for start, end in runs_of_true_marks(selected):
            hard.append({"start_token": start, "end_token": end})
        rationale[HARD] = hard
    return rationale


def largest_exported_score(scores: Sequence[float]) -> float:
    """The score that is furthest from 0; 0 where there is none."""
    return max(scores, key=abs, default=0.0)
