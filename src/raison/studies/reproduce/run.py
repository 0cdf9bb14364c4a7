"""What the papers report, run again: named suites (suites/*.toml) whose numbers go into docs/reproduction.md.

A suite names runs (model, data, methods), the paper's values, what differs here, and the paper's claims, each of which
is a comparison of methods that is tested. Models that raison does not ship are made by a recipe and passed as
`--model name=folder`; a run whose model is not there is named in the page, with the command that makes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from raison.api import load
from raison.core.errors import InputError
from raison.core.evaluation import Cell, Evaluation
from raison.core.files import write_whole
from raison.core.records import Example
from raison.datasets.open import open_dataset
from raison.metrics.statistics import mean_interval
from raison.models.protocol import Model, Prediction
from raison.models.weight_fingerprint import fingerprint_of_weights
from raison.studies.compare import Verdict, tested
from raison.studies.evaluate import evaluate
from raison.studies.prompts import answered, marks, prompted
from raison.studies.reproduce.experiment import NotMade, Trial, experiments
from raison.studies.reproduce.suite import Claim, Run, Suite, suite_named

__all__ = ["PART", "Outcome", "reproduce"]

PART = re.compile(r".+\.[0-9a-f]{12}\.json")  # a part that is done


@dataclass
class Outcome:
    """A run of a suite: its numbers and the verdicts on the claims."""

    run: Run
    evaluation: Evaluation | None = None
    verdicts: list[tuple[Claim, Verdict]] = field(default_factory=list)
    spread: dict[tuple[str, str], float] = field(default_factory=dict)  # (title, number) -> deviation over seeds
    read: int = 0  # texts of the data set that were looked at
    right: str = ""  # how often the model is right on these texts


def reproduce(
    name: str,
    *,
    models: Mapping[str, str] | None = None,
    limit: int | None = None,
    data_dir: Any = None,
    seed: int = 0,
    keep: Path | None = None,
    step: Any = lambda said: None,
) -> tuple[Suite, list[Outcome]]:
    """Run a suite; `models` are folders of what the recipes made, `limit` makes every run shorter.

    Parts that are done are kept in the folder `keep`, and a suite that was stopped goes on from there.
    """
    suite = suite_named(name)
    known = list(dict.fromkeys(run.model for run in suite.runs))
    if wrong := [key for key in models or {} if key not in known]:
        raise InputError(f"{suite.name} runs no model that is called {wrong[0]!r}: its models are {', '.join(known)}.")
    outcomes: list[Outcome] = []
    missing: list[NotMade] = []
    for run in suite.runs:
        place = (models or {}).get(run.model, None if run.recipe else run.model)
        outcome = Outcome(run)
        outcomes.append(outcome)
        if place is None:
            continue
        step(f"{suite.name}: {run.name}")
        model: Any = Path(place) if run.folder else load(place)
        data, count = run.data.replace("{model}", str(place)), min(limit or run.limit, run.limit)
        kept = Kept(None if run.folder else keep, suite, run, weights_of(model) if keep is not None else "", step)
        if suite.experiment:
            try:
                trial = Trial(model, suite.methods, run, count, seed, data_dir, step, suite.axis)
                outcome.evaluation = tried(suite, trial, kept)
            except NotMade as error:  # the page says so; a day of training may be done in parts
                missing.append(error)
                continue
        else:
            examples, said, outcome.read = chosen_texts(model, run, data, count, data_dir)
            outcome.right = how_right(model, examples, said)
            outcome.evaluation, outcome.spread = measured(suite, model, examples, run, seed, kept)
        pairs = [
            (claim.first, claim.second, next(c for c in outcome.evaluation.columns if c.key == claim.key))
            for claim in suite.claims
        ]
        outcome.verdicts = list(zip(suite.claims, tested(outcome.evaluation, pairs), strict=True)) if pairs else []
    if missing and not any(outcome.evaluation for outcome in outcomes):
        raise missing[0]
    return suite, outcomes


def tried(suite: Suite, trial: Trial, kept: Kept) -> Evaluation:
    """The numbers of an experiment."""
    asked = {
        "model": trial.model.name,
        "methods": dict(suite.methods),
        "count": trial.count,
        "seed": trial.seed,
    }
    return kept("experiment", asked, lambda: experiments[suite.experiment](trial))


def chosen_texts(
    model: Model, run: Run, data: str, count: int, data_dir: Any
) -> tuple[list[Example], list[Prediction], int]:
    """The first texts that fit, what the model says about them, and how many were looked at for them."""
    read = open_dataset(data, split=run.split, data=data_dir, skip_broken=True)
    found: list[Example] = []
    said: list[Prediction] = []
    for number, example in enumerate(read.examples, 1):
        if run.label and str(example.label) != run.label:
            continue
        if run.prompt:
            example = prompted(example, run.prompt)
        encoding = model.encode([example], truncate=True)[0]
        if not run.shortest <= len(encoding) <= run.longest:
            continue
        answer = model.predict([encoding])[0]
        if run.least and dict(answer.top).get(str(example.label), 0.0) < run.least:
            continue
        if run.prompt:
            example = answered(model, example)
            if example.target is None:  # it writes nothing, so nothing can be explained
                continue
        found.append(example)
        said.append(answer)
        if len(found) == count:
            return found, said, number
    if not found:
        raise InputError(f"No text of {data} has {run.shortest} to {run.longest} tokens and fits the suite.")
    return found, said, len(read.examples)


def how_right(model: Model, examples: Sequence[Example], said: Sequence[Prediction]) -> str:
    """How often the model is right on the texts of a run, in words."""
    if model.task == "qa" or examples[0].target is not None:
        told = [str(e.target) if e.target is not None else s.target.text for e, s in zip(examples, said, strict=True)]
        return marks(told, examples)
    right = [answer.target.text == str(example.label) for example, answer in zip(examples, said, strict=True)]
    return f"The model is right on {np.mean(right):.1%} of these texts."


@dataclass(frozen=True)
class Kept:
    """Parts of a run that are done, as files: a name for people, and a hash of everything that was asked."""

    folder: Path | None
    suite: Suite
    run: Run
    weights: str = ""  # of the model: one that was trained again under the same name is another
    step: Any = lambda said: None

    def __call__(self, about: str, asked: Mapping[str, Any], call: Callable[[], Evaluation]) -> Evaluation:
        self.step(f"{self.suite.name}: {self.run.name}, {about}")
        if self.folder is None:
            return call()
        known = asdict(self.run) | {"paper": None, "about": None, "recipe": None, "weights": self.weights}
        text = json.dumps([known, dict(asked)], sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{self.suite.name}.{self.run.name}.{about}.{digest}.json".replace(" ", "-")
        # not there, torn, or something else (a UnicodeDecodeError is a ValueError): made again
        with contextlib.suppress(OSError, InputError, ValueError):
            return Evaluation.from_json(file.read_text(encoding="utf-8"))
        made = call()
        with write_whole(file) as half:  # somebody else may fill the same folder
            half.write_text(made.to_json() + "\n", encoding="utf-8")
        return made


def weights_of(model: Model) -> str:
    """The fingerprint of a model's weights; "" where it has none that can be read."""
    return fingerprint_of_weights(model.hf.state_dict().items()) if hasattr(model, "hf") else ""


def measured(
    suite: Suite, model: Model, examples: list[Example], run: Run, seed: int, kept: Kept | None = None
) -> tuple[Evaluation, dict[tuple[str, str], float]]:
    """All methods of a suite under their titles; those with several seeds as the mean of their runs."""
    kept = kept or Kept(None, suite, run)
    how: dict[str, Any] = {"target": suite.target, "units": suite.units, "removal": suite.removal}
    if run.prompt:
        how |= {"target": "given", "removal": None}  # a causal model has no [MASK]

    def of(specs: Sequence[str], titles: Sequence[str], seed: int, about: str) -> Evaluation:
        asked = {
            **how, "methods": list(specs), "metrics": suite.metrics, "seed": seed, "model": model.name,
            "texts": [example.to_dict() for example in examples],
        }  # fmt: skip

        def run_of_all() -> Evaluation:
            made = evaluate(model, examples, list(specs), suite.metrics, seed=seed, **how)
            if len(made.texts) < len(
                examples
            ):  # evaluate gives what it has when somebody stops it: no part that is done
                raise KeyboardInterrupt
            return made

        return renamed(kept(about, asked, run_of_all), titles)

    once = {title: spec for title, spec in suite.methods.items() if title not in suite.seeds}
    first = of(list(once.values()), list(once), seed, "once")
    cells, methods = list(first.cells), list(first.methods)
    curves = {key: dict(by) for key, by in first.curves.items()}
    spread: dict[tuple[str, str], float] = {}
    for title, count in suite.seeds.items():
        runs = [of([suite.methods[title]], [title], seed + k, f"{title}, seed {seed + k}") for k in range(count)]
        for column in first.columns:
            same = [each.cell(title, column.key) for each in runs]
            cells.append(averaged(same, column.pooled, seed))
            values = [float(cell.value or 0.0) for cell in same]
            spread[title, column.key] = float(np.std(values, ddof=1)) if count > 1 else 0.0
        for key in curves:
            curves[key][title] = np.mean([each.curves[key][title] for each in runs], axis=0).tolist()
        methods.append(title)
    order = [title for title in suite.methods if title in methods]
    curves = {key: {title: by[title] for title in order} for key, by in curves.items()}
    cells.sort(key=lambda cell: order.index(cell.method))  # stable: columns keep their order
    settings = {**first.settings, "split": run.split, "limit": len(examples)}
    made = replace(
        first, data=run.data, methods=tuple(order), cells=tuple(cells), curves=curves, settings=settings, texts=()
    )
    return made, spread


def renamed(evaluation: Evaluation, titles: Sequence[str]) -> Evaluation:
    """Methods by the titles of the paper."""
    names = dict(zip(evaluation.methods, titles, strict=True))
    cells = tuple(replace(cell, method=names[cell.method]) for cell in evaluation.cells)
    curves = {key: {names[m]: curve for m, curve in by.items()} for key, by in evaluation.curves.items()}
    costs = {names.get(m, m): cost for m, cost in evaluation.costs.items()}
    return replace(evaluation, methods=tuple(titles), cells=cells, curves=curves, costs=costs)


def averaged(cells: Sequence[Cell], pooled: bool, seed: int) -> Cell:
    """Text by text the mean over seeds."""
    if pooled:
        raise InputError("Pooled numbers of several seeds have no mean text by text.")
    table = np.array([[np.nan if v is None else v for v in cell.each] for cell in cells])
    each = table.mean(0)
    found = mean_interval(each, seed=seed)
    told = tuple(None if math.isnan(v) else float(v) for v in each)
    return Cell(cells[0].method, cells[0].key, found.estimate, found.low, found.high, told)
