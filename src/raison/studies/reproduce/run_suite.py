"""`reproduce`: runs a suite (suites/*.toml) of a paper again; the texts of each run, its numbers, its claims tested.

A suite names runs (model, data, methods), the paper's values, what differs here, and the paper's claims, each of which
is a comparison of methods that is tested. Models that raison does not ship are made by a recipe and passed as
`--model name=folder`; a run whose model is not there is named in the page, with the command that makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from raison.api import load
from raison.core.errors import InputError
from raison.core.evaluation import Evaluation
from raison.core.records import Example
from raison.datasets.open import open_dataset
from raison.models.protocol import Model, Prediction
from raison.studies.compare_methods import Pair, Verdict, compare_pairs
from raison.studies.prompts import (
    prompt_with_written_answer,
    quality_of_prompted_answers,
    question_prompt,
)
from raison.studies.reproduce.experiment import ModelsNotMade, Trial, experiments
from raison.studies.reproduce.method_runs import SeedSpread, measure_methods
from raison.studies.reproduce.part_store import (
    PartStore,
    say_nothing,
    weights_fingerprint_for_suite,
)
from raison.studies.reproduce.suite import Suite, SuiteClaim, SuiteRun, suite_named

__all__ = ["RunOutcome", "TextsOfRun", "choose_texts_of_suite_run", "reproduce"]


@dataclass
class RunOutcome:
    """A run of a suite: its numbers and the verdicts on the claims."""

    run: SuiteRun
    evaluation: Evaluation | None = None  # None: its model is not there
    verdicts: list[tuple[SuiteClaim, Verdict]] = field(default_factory=list)
    spread: SeedSpread = field(default_factory=dict)
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
    step: Callable[[str], None] = say_nothing,
) -> tuple[Suite, list[RunOutcome]]:
    """Run a suite; `models` are folders of what the recipes made, `limit` makes every run shorter.

    Parts that are done are kept in the folder `keep`, and a suite that was stopped goes on from there.
    """
    suite = suite_named(name)
    places = dict(models or {})
    check_models_of_suite(suite, places)
    outcomes: list[RunOutcome] = []
    missing: list[ModelsNotMade] = []
    for run in suite.runs:
        outcome = RunOutcome(run)
        outcomes.append(outcome)
        place = places.get(run.model, None if run.recipe else run.model)
        if place is None:
            continue
        step(f"{suite.name}: {run.name}")
        job = RunJob(
            suite=suite,
            run=run,
            place=place,
            count=min(limit or run.limit, run.limit),
            seed=seed,
            data_dir=data_dir,
            keep=keep,
            step=step,
        )
        try:
            job.fill(outcome)
        except ModelsNotMade as error:  # the page says so; a day of training may be done in parts
            missing.append(error)
            continue
        outcome.verdicts = verdicts_on_claims(suite, outcome)

    if missing and not any(outcome.evaluation for outcome in outcomes):
        raise missing[0]
    return suite, outcomes


def check_models_of_suite(suite: Suite, models: Mapping[str, str]) -> None:
    """Refuse a model that the suite does not run."""
    known = list(dict.fromkeys(run.model for run in suite.runs))
    for name in models:
        if name not in known:
            raise InputError(
                f"{suite.name} runs no model that is called {name!r}: its models are {', '.join(known)}."
            )


@dataclass(frozen=True, kw_only=True)
class RunJob:
    """One run of a suite that is to be done."""

    suite: Suite
    run: SuiteRun
    place: str  # the model: a name, or a folder
    count: int  # texts at most
    seed: int
    data_dir: Any
    keep: Path | None
    step: Callable[[str], None]

    def fill(self, outcome: RunOutcome) -> None:
        """Put the numbers of the run into its outcome."""
        suite = self.suite
        run = self.run
        model: Any = Path(self.place) if run.folder else load(self.place)
        store = PartStore(
            folder=None if run.folder else self.keep,
            suite=suite,
            run=run,
            weights="" if self.keep is None else weights_fingerprint_for_suite(model),
            step=self.step,
        )
        if suite.experiment:
            outcome.evaluation = self.evaluation_of_experiment(model, store)
            return
        texts = choose_texts_of_suite_run(
            model, run, run.data.replace("{model}", str(self.place)), self.count, self.data_dir
        )
        outcome.read = texts.read
        outcome.right = texts.how_right(model)
        outcome.evaluation, outcome.spread = measure_methods(
            suite, model, texts.examples, run, self.seed, store
        )

    def evaluation_of_experiment(self, model: Any, store: PartStore) -> Evaluation:
        """The numbers of an experiment."""
        suite = self.suite
        trial = Trial(
            model=model,
            methods=suite.methods,
            run=self.run,
            count=self.count,
            seed=self.seed,
            data_dir=self.data_dir,
            step=self.step,
            axis=suite.axis,
        )
        request = {
            "model": model.name,
            "methods": dict(suite.methods),
            "count": self.count,
            "seed": self.seed,
        }
        return store.get("experiment", request, lambda: experiments[suite.experiment](trial))


def verdicts_on_claims(suite: Suite, outcome: RunOutcome) -> list[tuple[SuiteClaim, Verdict]]:
    """The claims of the suite, tested on the numbers of one run."""
    evaluation = outcome.evaluation
    if evaluation is None or not suite.claims:
        return []
    pairs = []
    for claim in suite.claims:
        pairs.append(Pair(claim.first, claim.second, evaluation.column(claim.key)))
    return list(zip(suite.claims, compare_pairs(evaluation, pairs), strict=True))


@dataclass(frozen=True)
class TextsOfRun:
    """Texts, what the model says about each, and how many were looked at to find them."""

    examples: list[Example]
    predictions: list[Prediction]
    read: int

    def how_right(self, model: Model) -> str:
        """How often the model is right on these texts, in words."""
        pairs = list(zip(self.examples, self.predictions, strict=True))
        if model.task == "qa" or self.examples[0].target is not None:
            answers = []
            for pair in pairs:
                answers.append(answer_given_in_run(*pair))
            return quality_of_prompted_answers(answers, self.examples)
        right = []
        for example, prediction in pairs:
            right.append(prediction.target.text == str(example.label))
        return f"The model is right on {np.mean(right):.1%} of these texts."


def answer_given_in_run(example: Example, prediction: Prediction) -> str:
    """What a model answers: what it wrote as the target of the example, or what it predicts."""
    if example.target is None:
        return prediction.target.text
    return str(example.target)


def choose_texts_of_suite_run(
    model: Model, run: SuiteRun, data: str, count: int, data_dir: Any
) -> TextsOfRun:
    """The first texts that fit, what the model says about them, and how many were looked at for them."""
    loaded = open_dataset(data, split=run.split, data=data_dir, skip_broken=True)
    examples: list[Example] = []
    predictions: list[Prediction] = []
    for number, example in enumerate(loaded.examples, 1):
        chosen = text_for_suite_run(model, run, example)
        if chosen is None:
            continue
        examples.append(chosen[0])
        predictions.append(chosen[1])
        if len(examples) == count:
            return TextsOfRun(examples, predictions, read=number)
    if not examples:
        raise InputError(
            f"No text of {data} has {run.shortest} to {run.longest} tokens and fits the suite."
        )
    return TextsOfRun(examples, predictions, read=len(loaded.examples))


def text_for_suite_run(
    model: Model, run: SuiteRun, example: Example
) -> tuple[Example, Prediction] | None:
    """The example as the model is asked about it, and what it says; None where it does not fit the run."""
    if run.label and str(example.label) != run.label:
        return None
    if run.prompt:
        example = question_prompt(example, run.prompt)
    (encoding,) = model.encode([example], truncate=True)
    if not run.shortest <= len(encoding) <= run.longest:
        return None
    (prediction,) = model.predict([encoding])
    if run.least and dict(prediction.top).get(str(example.label), 0.0) < run.least:
        return None
    if run.prompt:
        example = prompt_with_written_answer(model, example)
        if example.target is None:  # it writes nothing, so nothing can be explained
            return None
    return example, prediction
