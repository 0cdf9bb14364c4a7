"""What a run has measured, as the tables and the page of an evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import EvaluatedText, Evaluation, target_probability
from raison.metrics.base import AveragedF1, Share
from raison.runs.export import prediction_of
from raison.runs.plan import header_of
from raison.runs.storage import Place
from raison.runs.store import done_shards, records, spec_of
from raison.studies.evaluation_table import columns_of_metrics, names_of_curves, table_cell
from raison.studies.method_lists import method_list, metric_list

__all__ = ["report"]

SHOWN = 500  # texts whose scores are kept for the page: the best and worst are among them


def report(place: Place, level: float = 0.95) -> Evaluation:
    """Methods × metrics over all texts that are done; several targets of a text count as texts of their own."""
    spec, header = spec_of(place), header_of(place)
    if header is None:
        raise InputError(f"{str(place)!r} is not planned yet: run it first.")
    if not spec.metrics:
        raise InputError(f"The run {str(place)!r} measures nothing: its spec names no metrics.")
    methods = [str(each.spec()) for each in method_list(spec.methods)]
    metrics = metric_list(spec.metrics)
    numbers: dict[str, dict[tuple[int, int], dict[str, Any]]] = {name: {} for name in methods}
    texts: dict[tuple[int, int], EvaluatedText] = {}
    failed = 0
    for record in records(place):
        if "failed" in record:
            failed += 1
            continue
        for number, (each, told) in enumerate(zip(record["explanations"], record["numbers"], strict=True)):
            key = (record["index"], number)
            numbers[record["method"]][key] = told
            seen = texts.get(key)
            scores = dict(seen.units) if seen is not None else {}
            if len(texts) <= SHOWN:
                pairs = zip(each["units"]["names"], each["scores"], strict=True)
                scores[record["method"]] = [[name, round(score, 6)] for name, score in pairs]
            example = record["example"]
            texts[key] = EvaluatedText(
                example["id"], example["text"], example["pair"], example["label"], each["target"]["text"],
                target_probability(prediction_of(each)), scores,
            )  # fmt: skip
    keys = sorted(key for key in texts if all(key in numbers[name] for name in methods))
    if not keys:
        raise InputError(f"{str(place)!r} has no text that every method has explained yet.")
    settings = {
        "split": header.split, "limit": spec.limit, "target": spec.target, "units": spec.units, "seed": spec.seed,
        "level": level, "removal": spec.removal or "",
    }  # fmt: skip
    columns = columns_of_metrics(metrics)
    cells = []
    for name in methods:
        for column in columns:
            values = [value_of(numbers[name][key][column.key]) for key in keys]
            cells.append(table_cell(name, column, values, level=level, seed=spec.seed))
    curves: dict[str, dict[str, list[float]]] = {}
    for curve in names_of_curves(metrics):
        curves[curve] = {}
        for method in methods:
            rows = [numbers[method][key][curve]["curve"] for key in keys]
            curves[curve][method] = np.mean(rows, axis=0).tolist()
    notes = notes_of(place, failed, len(keys))
    shown = tuple(texts[key] for key in keys)
    return Evaluation(
        spec.model, header.data, tuple(methods), tuple(columns), tuple(cells), shown, curves, settings, notes
    )


def value_of(told: Any) -> Any:
    if isinstance(told, list):
        share = Share(*told[:2])
        return share if len(told) == 2 else AveragedF1(share, Share(*told[2:]))
    return float("nan") if told is None else told


def notes_of(place: Place, failed: int, count: int) -> tuple[str, ...]:
    header = header_of(place)
    assert header is not None
    said = []
    done = len(done_shards(place))
    if done < header.shards:
        said.append(f"{done} of {header.shards} shards are done: {count} texts so far")
    if failed:
        said.append(f"{failed} explanations failed")
    for number, what in ((header.twice, "stand there more than once and count once"), (header.cut, "were cut")):
        if number:
            said.append(f"{number} texts {what}")
    if header.broken:
        said.append(f"{header.broken} broken records were left out")
    return tuple(said)
