"""`evaluate`: methods × metrics on a data set, every explanation measured, every number with an interval."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from raison.api import Texts, load
from raison.core import progress
from raison.core.errors import InputError
from raison.core.evaluation import Cell, EvaluatedText, Evaluation, target_probability
from raison.core.json_record import JsonObject
from raison.core.records import Example, Explanation
from raison.core.spec import Spec
from raison.core.units import group_tokens
from raison.engine import Request, method_scores_again, run_methods
from raison.methods.base import Method, check_needs_of_method
from raison.metrics.base import Metric, Numbers, Subject, gold_share
from raison.metrics.metric_runner import measure_explanations
from raison.models.protocol import Model
from raison.models.runner.meter import metered
from raison.studies.evaluation_data import (
    DataRequest,
    check_evaluation_examples,
    count_in_data_note,
    data_notes,
    example_with_target,
    examples_with_ids,
    read_evaluation_data,
)
from raison.studies.evaluation_table import (
    columns_of_metrics,
    mean_curve,
    names_of_curves,
    table_cell,
    table_numbers_by_key,
)
from raison.studies.exchange.export_explanations import ExplanationExporter
from raison.studies.exchange.external_method import ExternalMethod, SilentModel
from raison.studies.exchange.matching import read_external_methods
from raison.studies.method_lists import method_list, metric_list

__all__ = ["DEFAULT_METHODS", "DEFAULT_METRICS", "evaluate"]

DEFAULT_METHODS = ("leave_one_out", "input_x_gradient", "attention_rollout", "random")
DEFAULT_METRICS = ("comprehensiveness", "sufficiency", "aopc", "loo_correlation")
TARGETS = ("predicted", "gold", "given")
GROUP = 32  # texts at a time: their questions fill batches, and what is lost when somebody stops is little


def evaluate(
    model: Any,
    data: Texts | str | os.PathLike[str] | None,
    methods: str | Method | Sequence[str | Spec | Method] | None = None,
    metrics: str | Metric | Sequence[str | Spec | Metric] = DEFAULT_METRICS,
    *,
    split: str | None = None,
    limit: int | None = None,
    target: str = "predicted",
    units: str = "word",
    removal: str | None = None,
    seed: int = 0,
    level: float = 0.95,
    skip_broken: bool = False,
    data_dir: Path | str | None = None,
    explanations: str | os.PathLike[str] | None = None,
    export: str | os.PathLike[str] | None = None,
) -> Evaluation:
    """Explain every text of `data` by every method, and measure every explanation by every metric.

    `data` is a list of examples or texts, the name of a data set (`raison ls datasets`) or a file. `target` is
    "predicted" (is the model explained?), "gold" (as papers that explain the right label do) or "given" (what each
    example names, such as a continuation). Texts that are too long are cut, and counted in the notes; every number
    comes with a bootstrap interval over texts. `explanations` is a file of explanations that were made elsewhere, which
    are measured instead of methods (`data` may be None where the file holds its texts); `export` writes what was
    explained as ERASER JSONL or Parquet.
    """
    if target not in TARGETS:
        raise InputError(
            f"The target of an evaluation is predicted, gold or given, not {target!r}."
        )
    if explanations is not None and methods is not None:
        raise InputError(
            "Either methods or explanations that were made elsewhere are evaluated: leave one of them away."
        )
    chosen_methods = method_list(DEFAULT_METHODS if methods is None else methods)
    chosen_metrics = metric_list(metrics)
    exporter = None if export is None else ExplanationExporter(Path(export))

    wanted = DataRequest(
        data=data, split=split, limit=limit, skip_broken=skip_broken, folder=data_dir
    )
    notes: list[str] = []
    if explanations is None:
        texts = read_evaluation_data(wanted)
    else:
        external = read_external_methods(explanations, wanted)
        texts, chosen_methods, notes = external.texts, external.methods, external.notes
    check_evaluation_examples(texts, chosen_metrics)

    opened = load_model_to_evaluate(model, chosen_metrics, external=explanations is not None)
    for method in chosen_methods:
        check_needs_of_method(method, opened)
    examples = []
    for example in examples_with_ids(texts.examples):
        examples.append(example_with_target(example, target, texts.name))

    request = Request(units=units, removal=removal, seed=seed, truncate=True)
    compare_with_gold = any("gold" in metric.needs for metric in chosen_metrics)
    job = Job(
        model=opened,
        methods=chosen_methods,
        metrics=chosen_metrics,
        request=request,
        gold_share=mean_gold_share_of_evaluation(opened, examples, request)
        if compare_with_gold
        else None,
        notes=notes,
        exporter=exporter,
    )
    evaluate_in_groups(job, examples)
    if exporter is not None:
        exporter.write()
    job.notes += data_notes(texts)

    settings: JsonObject = {
        "split": texts.split,
        "limit": limit,
        "target": target,
        "units": units,
        "seed": seed,
        "level": level,
        "removal": removal or opened.removals[0],
    }
    return job.evaluation(texts.name, settings, level=level)


def load_model_to_evaluate(model: Any, metrics: Sequence[Metric], *, external: bool) -> Model:
    """The model; or a silent one where nothing would ask it, so that no model cuts the texts."""
    asks_nothing = all(metric.needs <= {"gold"} for metric in metrics)
    if external and asks_nothing:
        return SilentModel()
    opened: Model = load(model)
    return opened


def mean_gold_share_of_evaluation(
    model: Model, examples: Sequence[Example], request: Request
) -> float | None:
    """Mean share of gold units over all texts that have gold: how long a rationale is in this data set."""
    shares = []
    for example in examples:
        if not example.gold:
            continue
        (encoding,) = model.encode([example], truncate=True)
        share = gold_share(encoding, group_tokens(encoding, request.level(model)), example)
        if share is not None:
            shares.append(share)
    if shares:
        return float(np.mean(shares))
    return None


def evaluate_in_groups(job: Job, examples: Sequence[Example]) -> None:
    """Explain and measure all texts, a group at a time; on Ctrl-C the groups that are done stay."""
    try:
        for start in range(0, len(examples), GROUP):
            progress.report(start, len(examples), "texts")
            with progress.silence():
                job.work(examples[start : start + GROUP])
    except KeyboardInterrupt:
        if not job.texts:
            raise
        job.notes.append(f"stopped after {len(job.texts)} of {len(examples)} texts")


@dataclass(kw_only=True)
class Job:
    """What is to be measured, and what has been measured so far."""

    model: Model
    methods: list[Method]
    metrics: list[Metric]
    request: Request
    gold_share: float | None = None  # of gold units in a text, on average over the data set
    exporter: ExplanationExporter | None = None
    texts: list[EvaluatedText] = field(default_factory=list)
    numbers: dict[str, list[Numbers]] = field(default_factory=dict)  # method -> text by text
    costs: dict[str, dict[str, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    cache: dict[Hashable, Any] = field(
        default_factory=dict
    )  # what metrics share, e.g. randomised models
    cut: int = 0  # texts that were too long
    unplaced: int = 0  # tokens of explanations made elsewhere that do not stand in their texts

    def work(self, examples: Sequence[Example]) -> None:
        """Explain and measure some texts by all methods; all or nothing of them is kept."""
        by_method = self.explain(examples)
        subjects = []
        for method, explanations in zip(self.methods, by_method, strict=True):
            for explanation, example in zip(explanations, examples, strict=True):
                subjects.append(self.subject(method, explanation, example))
        rows = self.measure(subjects)

        for place, method in enumerate(self.methods):
            start = place * len(examples)
            of_method = self.numbers.setdefault(str(method.spec()), [])
            of_method += rows[start : start + len(examples)]
        for number, example in enumerate(examples):
            explanations_of_text = []
            for explanations in by_method:
                explanations_of_text.append(explanations[number])
            self.keep_text(example, explanations_of_text)

    def explain(self, examples: Sequence[Example]) -> list[list[Explanation]]:
        """[methods][texts] explanations."""
        by_method = []
        for run in run_methods(self.model, examples, self.methods, self.request):
            if len(run.explanations) != len(examples):
                raise InputError(
                    f"{self.model.name} has several targets in a text: evaluate it on examples that name one target "
                    "each."
                )
            self.add_cost(str(run.method.spec()), run.cost)
            by_method.append(run.explanations)
        return by_method

    def subject(self, method: Method, explanation: Explanation, example: Example) -> Subject:
        """An explanation with what metrics may want to know about it."""
        return Subject(
            explanation=explanation,
            example=example,
            model=self.model,
            removal=self.request.removal,
            seed=self.request.seed,
            gold_share=self.gold_share,
            again=scorer_of_method(method, explanation, self.request.seed),
            cache=self.cache,
        )

    def measure(self, subjects: Sequence[Subject]) -> list[Numbers]:
        """The numbers of each subject, by their names."""
        with metered() as meter:
            clock = time.process_time()
            table = measure_explanations(self.model, subjects, self.metrics, self.request.removal)
            cpu_seconds = time.process_time() - clock
        self.add_cost("metrics", {"cpu_seconds": cpu_seconds, **vars(meter)})
        return [table_numbers_by_key(of_metrics) for of_metrics in table]

    def keep_text(self, example: Example, explanations: Sequence[Explanation]) -> None:
        """Add one text that was explained and measured by all methods."""
        self.cut += bool(explanations[0].encoding.truncated)
        self.texts.append(evaluated_text(example, explanations))
        for explanation in explanations:
            self.unplaced += explanation.diagnostics.get("unplaced", 0)
            if self.exporter is not None:
                self.exporter.add(example, explanation)

    def add_cost(self, name: str, cost: Mapping[str, float]) -> None:
        """Add what a method or the metrics took."""
        total = self.costs.setdefault(name, {})
        for key, value in cost.items():
            total[key] = total.get(key, 0) + value

    def evaluation(self, data: str, settings: JsonObject, *, level: float) -> Evaluation:
        """Everything that was measured as one record."""
        if self.cut:
            self.notes.append(
                f"{count_in_data_note(self.cut, 'text was too long and was', 'texts were too long and were')} cut"
            )
        if self.unplaced:
            tokens = count_in_data_note(self.unplaced, "token", "tokens")
            self.notes.append(
                f"{tokens} of the explanations, found nowhere in the texts, did not count"
            )
        for cost in self.costs.values():
            cost["texts"] = len(self.texts)

        columns = columns_of_metrics(self.metrics)
        cells: list[Cell] = []
        for method, rows in self.numbers.items():
            for column in columns:
                values = [row[column.key] for row in rows]
                cells.append(
                    table_cell(method, column, values, level=level, seed=self.request.seed)
                )
        curves = {}
        for key in names_of_curves(self.metrics):
            curves_of_key = {}
            for method, rows in self.numbers.items():
                curves_of_key[method] = mean_curve(rows, key)
            curves[key] = curves_of_key
        return Evaluation(
            model=self.model.name,
            data=data,
            methods=tuple(self.numbers),
            columns=tuple(columns),
            cells=tuple(cells),
            texts=tuple(self.texts),
            curves=curves,
            settings=settings,
            notes=tuple(self.notes),
            costs=self.costs,
        )


def scorer_of_method(
    method: Method, explanation: Explanation, seed: int
) -> Callable[[Model], np.ndarray] | None:
    """What scores the same text by the same method and another model; None for what was made elsewhere."""
    if isinstance(method, ExternalMethod):
        return None

    def scores_by(model: Model) -> np.ndarray:
        return method_scores_again(model, method, explanation, seed)

    return scores_by


def evaluated_text(example: Example, explanations: Sequence[Explanation]) -> EvaluatedText:
    """What a report shows of a text: its target, and the scores of all methods to six digits."""
    units: dict[str, list[list[Any]]] = {}
    for explanation in explanations:
        scored = zip(explanation.units.names, explanation.scores, strict=True)
        rounded = []
        for name, score in scored:
            rounded.append([name, round(float(score), 6)])
        units[explanation.method] = rounded
    return EvaluatedText(
        id=example.id,
        text=example.text,
        pair=example.pair,
        label=example.label,
        target=explanations[0].target.text,
        probability=target_probability(explanations[0].prediction),
        units=units,
    )
