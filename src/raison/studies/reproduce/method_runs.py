"""The methods of a suite run and measured by its metrics; those with several seeds as the mean of their runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import Cell, Evaluation
from raison.core.records import Example
from raison.metrics.statistics import mean_interval
from raison.models.protocol import Model
from raison.studies.evaluate_methods import evaluate
from raison.studies.reproduce.part_store import PartStore
from raison.studies.reproduce.suite import Suite, SuiteRun

__all__ = ["MethodRuns", "SeedSpread", "measure_methods"]

SeedSpread = dict[tuple[str, str], float]  # (title, number) -> deviation over seeds


@dataclass(frozen=True)
class MethodRuns:
    """Runs the methods of a suite on some texts."""

    suite: Suite
    model: Model
    examples: Sequence[Example]
    store: PartStore

    @property
    def run(self) -> SuiteRun:
        return self.store.run

    def measure(self, titles: Sequence[str], seed: int, about: str) -> Evaluation:
        """Some methods with one seed, under their titles."""
        specs = [self.suite.methods[title] for title in titles]
        # a causal model has no [MASK]
        target = "given" if self.run.prompt else self.suite.target
        removal = None if self.run.prompt else self.suite.removal
        texts = []
        for example in self.examples:
            texts.append(example.to_dict())
        request = {
            "target": target,
            "units": self.suite.units,
            "removal": removal,
            "methods": specs,
            "metrics": self.suite.metrics,
            "seed": seed,
            "model": self.model.name,
            "texts": texts,
        }

        def evaluate_all() -> Evaluation:
            evaluation = evaluate(
                self.model,
                list(self.examples),
                specs,
                self.suite.metrics,
                target=target,
                units=self.suite.units,
                removal=removal,
                seed=seed,
            )
            # evaluate gives what it has when somebody stops it: no part that is done
            if len(evaluation.texts) < len(self.examples):
                raise KeyboardInterrupt
            return evaluation

        return evaluation_with_method_titles(self.store.get(about, request, evaluate_all), titles)

    def measure_seeds(self, title: str, seed: int, count: int) -> list[Evaluation]:
        """One method with several seeds."""
        runs = []
        for each in range(seed, seed + count):
            runs.append(self.measure([title], each, f"{title}, seed {each}"))
        return runs


def measure_methods(
    suite: Suite,
    model: Model,
    examples: Sequence[Example],
    run: SuiteRun,
    seed: int,
    store: PartStore | None = None,
) -> tuple[Evaluation, SeedSpread]:
    """All methods of a suite under their titles, and how far those with several seeds spread."""
    runs = MethodRuns(suite, model, examples, store or PartStore(None, suite, run))
    asked_once = []
    for title in suite.methods:
        if title not in suite.seeds:
            asked_once.append(title)
    once = runs.measure(asked_once, seed, "once")
    cells = list(once.cells)
    curves = {key: dict(of_methods) for key, of_methods in once.curves.items()}
    spread: SeedSpread = {}
    for title, count in suite.seeds.items():
        seeds = runs.measure_seeds(title, seed, count)
        for column in once.columns:
            of_seeds = [each.cell(title, column.key) for each in seeds]
            if column.pooled:
                raise InputError("Pooled numbers of several seeds have no mean text by text.")
            cells.append(mean_cell_of_seeds(of_seeds, seed))
            spread[title, column.key] = deviation_over_seeds(of_seeds)
        for key in curves:
            curves_of_seeds = []
            for each in seeds:
                curves_of_seeds.append(each.curves[key][title])
            curves[key][title] = np.mean(curves_of_seeds, axis=0).tolist()

    titles = []
    for title in suite.methods:
        if title in once.methods or title in suite.seeds:
            titles.append(title)
    cells.sort(key=lambda cell: titles.index(cell.method))  # stable: columns keep their order
    ordered_curves = {}
    for key, of_methods in curves.items():
        ordered_curves[key] = method_curves_in_order(of_methods, titles)
    evaluation = replace(
        once,
        data=run.data,
        methods=tuple(titles),
        cells=tuple(cells),
        curves=ordered_curves,
        settings={**once.settings, "split": run.split, "limit": len(examples)},
        texts=(),
    )
    return evaluation, spread


def method_curves_in_order(
    curves: Mapping[str, list[float]], titles: Sequence[str]
) -> dict[str, list[float]]:
    return {title: curves[title] for title in titles}


def evaluation_with_method_titles(evaluation: Evaluation, titles: Sequence[str]) -> Evaluation:
    """Methods by the titles of the paper."""
    title_of = dict(zip(evaluation.methods, titles, strict=True))
    curves = {}
    for key, of_methods in evaluation.curves.items():
        renamed = {}
        for method, curve in of_methods.items():
            renamed[title_of[method]] = curve
        curves[key] = renamed
    costs = {}
    for method, cost in evaluation.costs.items():
        costs[title_of.get(method, method)] = cost
    return replace(
        evaluation,
        methods=tuple(titles),
        cells=tuple(replace(cell, method=title_of[cell.method]) for cell in evaluation.cells),
        curves=curves,
        costs=costs,
    )


def deviation_over_seeds(cells: Sequence[Cell]) -> float:
    """The deviation of a number over seeds; 0 of one."""
    if len(cells) < 2:
        return 0.0
    values = [float(cell.value or 0.0) for cell in cells]
    return float(np.std(values, ddof=1))


def mean_cell_of_seeds(cells: Sequence[Cell], seed: int) -> Cell:
    """Text by text the mean over seeds."""
    table = np.array([cell.each for cell in cells], dtype=float)  # None: NaN
    means = table.mean(0)
    interval = mean_interval(means, seed=seed)
    each = [None if math.isnan(mean) else float(mean) for mean in means]
    first = cells[0]
    return Cell(
        method=first.method,
        key=first.key,
        value=interval.estimate,
        low=interval.low,
        high=interval.high,
        each=tuple(each),
    )
