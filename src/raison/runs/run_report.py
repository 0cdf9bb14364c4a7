"""The evaluation of a run: what it has measured, as tables and curves."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import EvaluatedText, Evaluation
from raison.core.json_record import JsonObject
from raison.metrics.base import Metric
from raison.runs.plan import Header, planned_header
from raison.runs.result_records import (
    ResultRecord,
    StoredNumbers,
    number_of_stored,
    stored_probability,
)
from raison.runs.storage import Place
from raison.runs.store import done_shards, method_names_in_store, records_of_run, spec_of_run
from raison.studies.evaluation_table import columns_of_metrics, names_of_curves, table_cell
from raison.studies.method_lists import metric_list

__all__ = ["evaluation_of_run"]

SHOWN = 500  # texts whose scores are kept for the page: the best and worst are among them

TextKey = tuple[int, int]  # the number of a text in the corpus, and of a target in it


def evaluation_of_run(place: Place, level: float = 0.95) -> Evaluation:
    """Methods × metrics over all texts that are done; several targets of a text count as texts of their own."""
    spec = spec_of_run(place)
    header = planned_header(place)
    if not spec.metrics:
        raise InputError(f"The run {str(place)!r} measures nothing: its spec names no metrics.")
    methods = method_names_in_store(spec)
    metrics = metric_list(spec.metrics)
    measured = MeasuredRun(methods)
    for record in records_of_run(place):
        measured.add(record)
    keys = measured.complete_keys()
    if not keys:
        raise InputError(f"{str(place)!r} has no text that every method has explained yet.")

    settings = {
        "split": header.split,
        "limit": spec.limit,
        "target": spec.target,
        "units": spec.units,
        "seed": spec.seed,
        "level": level,
        "removal": spec.removal or "",
    }
    columns = columns_of_metrics(metrics)
    cells = []
    for method in methods:
        for column in columns:
            values = [number_of_stored(measured.numbers[method][key][column.key]) for key in keys]
            cells.append(table_cell(method, column, values, level=level, seed=spec.seed))
    return Evaluation(
        model=spec.model,
        data=header.data,
        methods=tuple(methods),
        columns=tuple(columns),
        cells=tuple(cells),
        texts=tuple(measured.texts[key] for key in keys),
        curves=measured.mean_curves(metrics, keys),
        settings=settings,
        notes=notes_on_run(
            header, done=len(done_shards(place)), failed=measured.failed, texts=len(keys)
        ),
    )


@dataclass
class MeasuredRun:
    """The numbers of a run and its texts, collected record by record."""

    methods: list[str]
    numbers: dict[str, dict[TextKey, StoredNumbers]] = field(init=False)  # of each method
    texts: dict[TextKey, EvaluatedText] = field(default_factory=dict)
    failed: int = 0

    def __post_init__(self) -> None:
        self.numbers = {method: {} for method in self.methods}

    def add(self, record: ResultRecord) -> None:
        if record.failure is not None:
            self.failed += 1
            return
        for target, (explanation, numbers) in enumerate(
            zip(record.explanations, record.numbers_of_each, strict=True)
        ):
            key = (record.index, target)
            self.numbers[record.method][key] = numbers
            self.texts[key] = self.text_with_scores(key, record, explanation)

    def text_with_scores(
        self, key: TextKey, record: ResultRecord, explanation: JsonObject
    ) -> EvaluatedText:
        """A text with the scores of this method beside those of the methods before it."""
        earlier = self.texts.get(key)
        scores = {} if earlier is None else dict(earlier.units)
        if len(self.texts) <= SHOWN:
            pairs = zip(explanation["units"]["names"], explanation["scores"], strict=True)
            scores[record.method] = [[name, round(score, 6)] for name, score in pairs]
        return EvaluatedText(
            id=record.example.id,
            text=record.example.text,
            pair=record.example.pair,
            label=record.example.label,
            target=explanation["target"]["text"],
            probability=stored_probability(explanation),
            units=scores,
        )

    def complete_keys(self) -> list[TextKey]:
        """The texts that every method has explained."""
        keys = set(self.texts)
        for method in self.methods:
            keys &= self.numbers[method].keys()
        return sorted(keys)

    def mean_curves(
        self, metrics: list[Metric], keys: list[TextKey]
    ) -> dict[str, dict[str, list[float]]]:
        """The mean of each curve over texts, method by method."""
        curves: dict[str, dict[str, list[float]]] = {}
        for name in names_of_curves(metrics):
            curves[name] = {}
            for method in self.methods:
                rows = []
                for key in keys:
                    stored = self.numbers[method][key][name]
                    if isinstance(stored, dict):
                        rows.append(stored["curve"])
                curves[name][method] = np.mean(rows, axis=0).tolist()
        return curves


def notes_on_run(header: Header, *, done: int, failed: int, texts: int) -> tuple[str, ...]:
    """What a reader of the tables should know."""
    notes = []
    if done < header.shards:
        notes.append(f"{done} of {header.shards} shards are done: {texts} texts so far")
    if failed:
        notes.append(f"{failed} explanations failed")
    if header.twice:
        notes.append(f"{header.twice} texts stand there more than once and count once")
    if header.cut:
        notes.append(f"{header.cut} texts were cut")
    if header.broken:
        notes.append(f"{header.broken} broken records were left out")
    return tuple(notes)
