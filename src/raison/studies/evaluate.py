"""Methods × metrics on a data set: every explanation measured, every number with an interval."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from raison.api import examples_of, load
from raison.core import progress
from raison.core.errors import InputError
from raison.core.evaluation import Cell, Column, EvaluatedText, Evaluation, target_probability
from raison.core.records import Encoding, Example, Explanation
from raison.core.registry import methods as all_methods
from raison.core.registry import metrics as all_metrics
from raison.core.registry import searches
from raison.core.spec import Spec
from raison.core.units import group
from raison.datasets.loading import LoadedData
from raison.datasets.open import open_dataset
from raison.engine import Request, run_methods, scores_again
from raison.methods.base import Method, check_needs
from raison.metrics.base import AveragedF1, Metric, Share, Subject, gold_share
from raison.metrics.runner import Numbers, measure
from raison.metrics.statistics import averaged_f1_interval, mean_interval, pooled_interval
from raison.models.protocol import Model
from raison.models.runner.meter import metered
from raison.models.tasks.function import Function, axis_of_words
from raison.studies.exchange import Elsewhere, Exporter, Made, read_made

__all__ = ["DEFAULT_METHODS", "DEFAULT_METRICS", "evaluate"]

DEFAULT_METHODS = ("leave_one_out", "input_x_gradient", "attention_rollout", "random")
DEFAULT_METRICS = ("comprehensiveness", "sufficiency", "aopc", "loo_correlation")
GROUP = 32  # texts at a time: their questions fill batches, and what is lost when somebody stops is little


def evaluate(
    model: Any,
    data: Any,
    methods: Sequence[str | Method] | None = None,
    metrics: Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    split: str | None = None,
    limit: int | None = None,
    target: str = "predicted",
    units: str = "word",
    removal: str | None = None,
    seed: int = 0,
    level: float = 0.95,
    skip_broken: bool = False,
    data_dir: Any = None,
    explanations: Any = None,
    export: Any = None,
) -> Evaluation:
    """Explain every text of `data` by every method, and measure every explanation by every metric.

    `data` is a list of examples or texts, the name of a data set (`raison ls datasets`) or a file. `target` is
    "predicted" (is the model explained?), "gold" (as papers that explain the right label do) or "given" (what each
    example names, such as a continuation). Texts that are too long are cut, and counted in the notes; every number
    comes with a bootstrap interval over texts. `explanations` is a file of explanations that were made elsewhere, which
    are measured instead of methods (`data` may be None where the file holds its texts); `export` writes what was
    explained as ERASER JSONL or Parquet.
    """
    if target not in ("predicted", "gold", "given"):
        raise InputError(f"The target of an evaluation is predicted, gold or given, not {target!r}.")
    if explanations is not None and methods is not None:
        raise InputError(
            "Either methods or explanations that were made elsewhere are evaluated: leave one of them away."
        )
    chosen, measures = method_list(DEFAULT_METHODS if methods is None else methods), metric_list(metrics)
    exporter = None if export is None else Exporter(Path(export))
    notes: list[str] = []
    if explanations is not None:
        read, chosen, notes = made_elsewhere(explanations, data, split, limit, skip_broken, data_dir)
    else:
        read = read_data(data, split, limit, skip_broken, data_dir)
    check_examples(read, measures)
    if explanations is not None and all(each.needs <= {"gold"} for each in measures):
        opened: Any = Silent()  # nobody is asked, so no model cuts the texts
    else:
        opened = load(model)
    for each in chosen:
        check_needs(each, opened)
    examples = [aimed(example, target, read.name) for example in numbered(read.examples)]
    request = Request(units=units, removal=removal, seed=seed, truncate=True)
    share = rationale_share(opened, examples, request) if any("gold" in each.needs for each in measures) else None
    job = Job(opened, chosen, measures, request, notes=notes, exporter=exporter, share=share)
    try:
        for start in range(0, len(examples), GROUP):
            progress.report(start, len(examples), "texts")
            with progress.silence():
                job.work(examples[start : start + GROUP])
    except KeyboardInterrupt:
        if not job.texts:
            raise
        job.notes.append(f"stopped after {len(job.texts)} of {len(examples)} texts")
    if exporter is not None:
        exporter.write()
    job.notes += [read.understood] if read.understood else []
    job.notes += read.doubts
    if read.broken:
        job.notes.append(f"{counted(len(read.broken), 'broken record was', 'broken records were')} left out")
    job.notes += [f"put right in {counted(count, 'record', 'records')}: {what}" for what, count in read.mended.items()]
    settings = {
        "split": read.split, "limit": limit, "target": target, "units": units, "seed": seed, "level": level,
        "removal": removal or opened.removals[0],
    }  # fmt: skip
    return job.evaluation(read.name, settings)


def method_list(methods: Sequence[str | Method]) -> list[Method]:
    """Methods and searches by name; each once."""
    given = [methods] if isinstance(methods, (str, Method)) else list(methods)
    found: list[Method] = []
    for each in given:
        if isinstance(each, Method):
            found.append(each)
            continue
        name = Spec.parse(each).name if isinstance(each, str) else each.name
        found.append((searches if name in searches and name not in all_methods else all_methods).build(each))
    names = [str(each.spec()) for each in found]
    if not found:
        raise InputError("There is nothing to evaluate: name at least one method.")
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(f"{', '.join(sorted(twice))} is named twice: name every method once.")
    return found


def metric_list(metrics: Sequence[str | Metric]) -> list[Metric]:
    """Metrics by name; no number may be given twice."""
    given = [metrics] if isinstance(metrics, (str, Metric)) else list(metrics)
    found: list[Metric] = [each if isinstance(each, Metric) else all_metrics.build(each) for each in given]
    if not found:
        raise InputError("There is nothing to measure: name at least one metric.")
    keys = [key.name for each in found for key in each.keys]
    if twice := {key for key in keys if keys.count(key) > 1}:
        raise InputError(f"{', '.join(sorted(twice))} would be measured twice: name every metric once.")
    return found


def read_data(data: Any, split: str | None, limit: int | None, skip_broken: bool, folder: Any) -> LoadedData:
    """The examples of a list, a data set or a file."""
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        return open_dataset(str(data), split=split, limit=limit, data=folder, skip_broken=skip_broken)
    return LoadedData("texts", split or "", "text", (), examples_of(data)[:limit])


def check_examples(read: LoadedData, metrics: Sequence[Metric]) -> None:
    """Refuse before the work, not after it, what no metric can measure."""
    if not read.examples:
        if read.broken:
            raise InputError(f"All {len(read.broken)} records of {read.name} are broken; the first: {read.broken[0]}.")
        raise InputError(f"There is no text in {read.name}: name data that has some.")
    wanting = [each.name for each in metrics if "gold" in each.needs]
    if wanting and not read.gold:
        raise InputError(
            f"{read.name} has no human rationales to compare with: use data that has some, or another metric than "
            f"{', '.join(wanting)}."
        )


def counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def numbered(examples: Sequence[Example]) -> list[Example]:
    """Examples that can be told apart: those without an id are known by their number."""
    return [example if example.id else replace(example, id=str(k)) for k, example in enumerate(examples)]


class Silent(Function):
    """A model that says nothing, about texts and pairs."""

    def __init__(self) -> None:
        super().__init__(lambda texts: np.zeros((len(texts), 2)), "silent", ["none", "any"])

    def encode_one(self, example: Example) -> Encoding:
        return axis_of_words(example)


def made_elsewhere(
    path: Any, data: Any, split: str | None, limit: int | None, skip_broken: bool, folder: Any
) -> tuple[LoadedData, list[Method], list[str]]:
    """The texts of explanations that were made elsewhere, a method for each that they name, and what to know."""
    read = LoadedData(Path(path).name, "", "text", (), [])
    if data is not None:
        read = read_data(data, split, None, skip_broken, folder)
    known = Known(numbered(read.examples), read.name if data is not None else "")
    by_method: dict[str, dict[str, Any]] = {}
    examples: dict[str, Example] = {}
    for each in read_made(path, known.by_id):
        table = by_method.setdefault(each.method, {})
        example = known.about(each, len(table))
        if example.id in table:
            raise InputError(
                f"{each.method} explains {example.id!r} twice: give every explanation the id of a text of its own."
            )
        table[example.id] = each
        examples.setdefault(example.id, example)
    for title, table in by_method.items():
        if missing := next((name for name in list(examples)[:limit] if name not in table), None):
            raise InputError(f"{title} has no explanation of {missing!r}: give every method the same texts.")
    methods: list[Method] = [Elsewhere(table, title) for title, table in by_method.items()]
    notes = []
    if data is not None and len(examples) < len(known.examples):
        notes.append(f"there are explanations of {len(examples)} of the {len(known.examples)} texts")
    return replace(read, examples=list(examples.values())[:limit]), methods, notes


@dataclass
class Known:
    """The texts that explanations from elsewhere may be about."""

    examples: list[Example]
    name: str = ""  # of the data; empty: there is none, and the explanations bring their texts

    def __post_init__(self) -> None:
        self.by_id = {example.id: example for example in self.examples}
        self.by_text = {example.text: example for example in reversed(self.examples)}  # the first of equal ones

    def about(self, made: Made, place: int) -> Example:
        """The example of an explanation: that of its id, else of its text, else of its place in the order."""
        if made.text is None:
            if not made.id and self.name and place < len(self.examples):
                return self.examples[place]
            if made.id not in self.by_id:
                told = f"of {made.id!r}" if made.id else f"number {place + 1}"
                why = f"{self.name} has no such text" if self.name else "no data is named that has it"
                raise InputError(f"The explanation {told} has no text, and {why}: name the data that was explained.")
            return self.by_id[made.id]
        named = self.by_id.get(made.id)
        if named is not None and named.text == made.text:
            return named
        if named is not None:
            raise InputError(
                f"The explanation of {made.id!r} is about {made.text[:40]!r}, but that text is {named.text[:40]!r}: "
                "give it the id of its own text."
            )
        if made.text in self.by_text and not (made.id and not self.name):
            return self.by_text[made.text]
        if self.name:
            raise InputError(
                f"{self.name} has no text {made.text[:40]!r}: name the data set that was explained, or none."
            )
        example = Example(made.text, id=made.id or str(len(self.examples)), label=made.target)
        self.examples.append(example)
        self.by_id[example.id] = example
        self.by_text.setdefault(example.text, example)
        return example


def aimed(example: Example, target: str, name: str) -> Example:
    """The example with the target that is to be explained."""
    if target == "predicted":
        return replace(example, target=None)
    if target == "given":
        if example.target is None:
            raise InputError(f"The example {example.id or example.text[:40]!r} of {name} names no target to explain.")
        return example
    if example.label is None:
        raise InputError(
            f"The example {example.id or example.text[:40]!r} of {name} has no label: use target=predicted."
        )
    return replace(example, target=example.label)


@dataclass
class Job:
    """What has been measured so far."""

    model: Model
    methods: list[Method]
    metrics: list[Metric]
    request: Request
    texts: list[EvaluatedText] = field(default_factory=list)
    numbers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # method -> text by text
    costs: dict[str, dict[str, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    cache: dict[Any, Any] = field(default_factory=dict)
    cut: int = 0
    unplaced: int = 0  # tokens of explanations made elsewhere that do not stand in their texts
    exporter: Exporter | None = None
    share: float | None = None  # of gold units in a text, on average over the data set

    def work(self, examples: Sequence[Example]) -> None:
        """Explain and measure some texts by all methods; all or nothing of them is kept."""
        by_method: list[list[Explanation]] = []
        for run in run_methods(self.model, examples, self.methods, self.request):
            if len(run.explanations) != len(examples):
                raise InputError(
                    f"{self.model.name} has several targets in a text: evaluate it on examples that name one target "
                    "each."
                )
            self.add_cost(str(run.method.spec()), run.cost)
            by_method.append(run.explanations)
        subjects = [
            self.subject(method, explanation, example)
            for method, found in zip(self.methods, by_method, strict=True)
            for explanation, example in zip(found, examples, strict=True)
        ]
        with metered() as meter:
            clock = time.process_time()
            measured = iter(measure(self.model, subjects, self.metrics, self.request.removal))
            self.add_cost("metrics", {"cpu_seconds": time.process_time() - clock, **vars(meter)})
        for method, found in zip(self.methods, by_method, strict=True):
            rows = self.numbers.setdefault(str(method.spec()), [])
            rows += [merged(next(measured)) for _ in found]
        for number, example in enumerate(examples):
            here = [found[number] for found in by_method]
            self.cut += bool(here[0].encoding.truncated)
            self.unplaced += sum(each.diagnostics.get("unplaced", 0) for each in here)
            self.texts.append(seen(example, here))
            if self.exporter is not None:
                for each in here:
                    self.exporter.add(example, each)

    def subject(self, method: Method, explanation: Explanation, example: Example) -> Subject:
        again = None
        if not isinstance(method, Elsewhere):
            again = lambda other: scores_again(other, method, explanation, self.request.seed)  # noqa: E731
        return Subject(
            explanation, example, self.model, self.request.removal, self.request.seed, self.share, again, self.cache
        )

    def add_cost(self, name: str, cost: Mapping[str, float]) -> None:
        """Add what a method or the metrics took."""
        total = self.costs.setdefault(name, {})
        for key, value in cost.items():
            total[key] = total.get(key, 0) + value

    def evaluation(self, name: str, settings: dict[str, Any]) -> Evaluation:
        """Everything that was measured as one record."""
        if self.cut:
            self.notes.append(f"{counted(self.cut, 'text was too long and was', 'texts were too long and were')} cut")
        if self.unplaced:
            found = counted(self.unplaced, "token", "tokens")
            self.notes.append(f"{found} of the explanations, found nowhere in the texts, did not count")
        columns = columns_of_metrics(self.metrics)
        cells = [
            cell(method, column, [row[column.key] for row in rows], settings)
            for method, rows in self.numbers.items()
            for column in columns
        ]
        curves: dict[str, dict[str, list[float]]] = {}
        for curve in names_of_curves(self.metrics):
            curves[curve] = {method: mean_curve(rows, curve) for method, rows in self.numbers.items()}
        for cost in self.costs.values():
            cost["texts"] = len(self.texts)
        return Evaluation(
            self.model.name, name, tuple(self.numbers), tuple(columns), tuple(cells), tuple(self.texts), curves,
            settings, tuple(self.notes), self.costs,
        )  # fmt: skip


def merged(numbers: Iterable[Numbers]) -> dict[str, Any]:
    """The numbers of all metrics by their names."""
    return {key: value for each in numbers for key, value in each.items()}


def columns_of_metrics(metrics: Sequence[Metric]) -> list[Column]:
    """A column for each number of each metric that is no curve."""
    columns = []
    for each in metrics:
        for key in each.scalar_keys():
            columns.append(Column(key.name, str(each.spec()), key.higher_is_better, key.pooled, each.paper))
    return columns


def names_of_curves(metrics: Sequence[Metric]) -> list[str]:
    """The names of all curves of all metrics."""
    return [key.name for each in metrics for key in each.curve_keys()]


def mean_curve(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """The mean of a curve over texts."""
    return np.mean([row[name] for row in rows], axis=0).tolist()


def rationale_share(model: Model, examples: Sequence[Example], request: Request) -> float | None:
    """Mean share of gold units over all texts that have gold: how long a rationale is in this data set."""
    shares = []
    for example in examples:
        if example.gold:
            (encoding,) = model.encode([example], truncate=True)
            share = gold_share(encoding, group(encoding, request.level(model)), example)
            shares += [] if share is None else [share]
    return float(np.mean(shares)) if shares else None


def seen(example: Example, found: Sequence[Explanation]) -> EvaluatedText:
    scores = {
        each.method: [[name, round(float(score), 6)] for name, score in zip(each.units.names, each.scores, strict=True)]
        for each in found
    }
    text = found[0].target.text
    probability = target_probability(found[0].prediction)
    return EvaluatedText(example.id, example.text, example.pair, example.label, text, probability, scores)


def cell(method: str, column: Column, values: list[Any], settings: dict[str, Any]) -> Cell:
    """A number over all texts, with its interval."""
    how = {"level": settings["level"], "seed": settings["seed"]}
    each = [float(value) for value in values]
    averaged = bool(values) and isinstance(values[0], AveragedF1)
    if averaged:
        found = averaged_f1_interval(values, **how)
    else:
        found = pooled_interval(values, **how) if column.pooled else mean_interval(each, **how)
    value, low, high = (known(number) for number in (found.estimate, found.low, found.high))
    made = Cell(method, column.key, value, low, high, tuple(map(known, each)))
    if not column.pooled:
        return made
    shares = [value.precision for value in values] if averaged else values
    parts, wholes = columns_of(shares)
    made = replace(made, parts=parts, wholes=wholes)
    if not averaged:
        return made
    recall_parts, recall_wholes = columns_of([value.recall for value in values])
    return replace(made, recall_parts=recall_parts, recall_wholes=recall_wholes)


def columns_of(shares: Sequence[Share]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Parts and wholes."""
    return tuple(float(share.part) for share in shares), tuple(float(share.whole) for share in shares)


def known(value: float) -> float | None:
    """JSON has no NaN: what is not defined is None."""
    return None if np.isnan(value) else float(value)
