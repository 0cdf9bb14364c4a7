"""What the papers report, run again: named suites (suites/*.toml) whose numbers go into docs/reproduction.md.

A suite names runs (model, data, methods), the paper's values, what differs here, and the paper's claims, each of which
is a comparison of methods that is tested. Models that raison does not ship are made by a recipe and passed as
`--model name=folder`; a run whose model is not there is named in the page, with the command that makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raison.api import load
from raison.core.errors import InputError
from raison.core.evaluation import Evaluation
from raison.studies.compare_methods import Pair, Verdict, compare_pairs
from raison.studies.reproduce.experiment import ModelsNotMade, Trial, experiments
from raison.studies.reproduce.method_runs import SeedSpread, measure_methods
from raison.studies.reproduce.part_store import PartStore, say_nothing, weights_fingerprint
from raison.studies.reproduce.suite import Suite, SuiteClaim, SuiteRun, suite_named
from raison.studies.reproduce.texts_of_run import choose_texts_of_run

__all__ = ["RunOutcome", "reproduce"]


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
    check_names_of_models(suite, places)
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


def check_names_of_models(suite: Suite, models: Mapping[str, str]) -> None:
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
        suite, run = self.suite, self.run
        model: Any = Path(self.place) if run.folder else load(self.place)
        store = PartStore(
            folder=None if run.folder else self.keep,
            suite=suite,
            run=run,
            weights="" if self.keep is None else weights_fingerprint(model),
            step=self.step,
        )
        if suite.experiment:
            outcome.evaluation = self.evaluation_of_experiment(model, store)
            return
        texts = choose_texts_of_run(
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
