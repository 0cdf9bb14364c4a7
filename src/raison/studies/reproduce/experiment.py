"""What an experiment is: numbers of methods, text by text, where a paper's table is more than methods × metrics.

An experiment lives in experiments/ and registers itself under the name that a suite gives (`experiment = "agreement"`).
It is called with a `Trial` and returns what it found as an `Evaluation` (`found`), so that intervals, tests of claims,
the page and the pictures are those of every other suite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raison.core.errors import InputError
from raison.core.evaluation import Column, Evaluation, MethodAxis
from raison.core.registry import Registry
from raison.metrics.base import Share
from raison.models.protocol import Model
from raison.studies.evaluation_table import table_cell
from raison.studies.reproduce.suite import Run

__all__ = ["Experiment", "NotMade", "Trial", "experiment", "experiments", "found"]

Number = float | Share | None  # None: not defined for this text


@dataclass(frozen=True)
class Trial:
    """One run of a suite, as an experiment gets it."""

    model: Model
    methods: Mapping[str, str]  # title -> spec of a method or a search
    run: Run  # with its own settings in `run.settings`
    count: int  # texts at most
    seed: int = 0
    data_dir: Any = None
    step: Callable[[str], None] = lambda said: None  # tells a person what is being done
    axis: MethodAxis | None = None  # of the suite's pictures


Experiment = Callable[[Trial], Evaluation]
experiments: Registry[Experiment] = Registry("experiment", "raison.studies.reproduce.experiments", listed=False)


def experiment(name: str) -> Callable[[Experiment], Experiment]:
    """Register an experiment under the name that suites use."""
    return experiments.register(name)


class NotMade(InputError):
    """The models of a run are not there yet: its recipe makes them."""


def found(
    trial: Trial,
    columns: Sequence[Column],
    numbers: Mapping[str, Sequence[Mapping[str, Number]]],
    *,
    data: str,
    about: Sequence[str] = (),
) -> Evaluation:
    """Numbers by title, text by text, as an evaluation; `about` are sentences for the page."""
    settings = {"seed": trial.seed, "level": 0.95, "limit": len(next(iter(numbers.values())))}
    cells = [
        table_cell(
            title,
            column,
            [known_or(row[column.key], column) for row in rows],
            level=0.95,
            seed=trial.seed,
        )
        for title, rows in numbers.items()
        for column in columns
    ]
    return Evaluation(
        trial.model.name, data, tuple(numbers), tuple(columns), tuple(cells), (), {}, settings, tuple(about)
    )


def known_or(value: Number, column: Column) -> float | Share:
    """What is not defined for a text: NaN, or nothing of nothing."""
    return value if value is not None else Share(0, 0) if column.pooled else float("nan")
