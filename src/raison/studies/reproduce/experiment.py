"""What an experiment is (`Trial` → `Evaluation`): rows of numbers, text by text, that are more than methods × metrics.

An experiment lives in experiments/ and registers itself under the name that a suite gives (`experiment = "agreement"`).
It is called with a `Trial` and returns what it found as an `Evaluation` (`evaluation_of_rows`), so that intervals,
tests of claims, the page and the pictures are those of every other suite. The numbers of one text are a `ResultRow`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from raison.core.errors import InputError
from raison.core.evaluation import Cell, Column, Evaluation, MethodAxis
from raison.core.registry import Registry
from raison.metrics.base import Share
from raison.models.protocol import Model
from raison.studies.evaluation_table import table_cell
from raison.studies.reproduce.suite import SuiteRun

__all__ = [
    "Experiment",
    "ModelsNotMade",
    "Number",
    "ResultRow",
    "Trial",
    "check_task_of_trial",
    "evaluation_of_rows",
    "experiment",
    "experiment_column",
    "experiments",
    "setting_of_trial",
    "titles_missing_in_trial",
]

Number = float | Share | None  # None: not defined for this text
SettingT = TypeVar("SettingT")
LEVEL = 0.95  # of the intervals


@dataclass(frozen=True)
class Trial:
    """One run of a suite, as an experiment gets it."""

    model: Model
    methods: Mapping[str, str]  # title -> spec of a method or a search
    run: SuiteRun  # with its own settings in `run.settings`
    count: int  # texts at most
    seed: int = 0
    data_dir: Any = None
    step: Callable[[str], None] = lambda sentence: None  # tells a person what is being done
    axis: MethodAxis | None = None  # of the suite's pictures


Experiment = Callable[[Trial], Evaluation]
experiments: Registry[Experiment] = Registry(
    "experiment", "raison.studies.reproduce.experiments", listed=False
)


def experiment(name: str) -> Callable[[Experiment], Experiment]:
    """Register an experiment under the name that suites use."""
    return experiments.register(name)


class ModelsNotMade(InputError):
    """The models of a run are not there yet: its recipe makes them."""


def setting_of_trial(trial: Trial, name: str, default: SettingT) -> SettingT:
    """A setting of the run, of the same kind as its default."""
    value = trial.run.settings.get(name, default)
    if not isinstance(value, type(default)):
        raise InputError(
            f"The setting {name!r} of the run {trial.run.name!r} is like {default!r}, not {value!r}."
        )
    return value


def check_task_of_trial(trial: Trial, task: str, kind: str) -> None:
    """Refuse a model of another task; `kind` names it in words."""
    if trial.model.task != task:
        raise InputError(
            f"{trial.run.name} needs {kind}, and {trial.model.name} is none: pass another model."
        )


def experiment_column(
    about: str, *, higher: bool | None, pooled: bool = False, **default: Any
) -> Any:
    """A field of a row: a number, what it is, and whether more is better; `pooled` numbers are `Share`s."""
    return field(metadata={"about": about, "higher": higher, "pooled": pooled}, **default)


class ResultRow:
    """The numbers of one text: a dataclass whose fields are made by `experiment_column`."""

    @classmethod
    def columns(cls) -> tuple[Column, ...]:
        """A column for each field."""
        columns = []
        for item in fields(cls):  # type: ignore[arg-type]
            about = item.metadata
            columns.append(
                Column(item.name, about["about"], higher=about["higher"], pooled=about["pooled"])
            )
        return tuple(columns)

    @classmethod
    def chosen_columns(cls, keys: Sequence[str] | None) -> tuple[Column, ...]:
        """The columns of these keys in the order of the fields; all of them for None."""
        if keys is None:
            return cls.columns()
        chosen = [column for column in cls.columns() if column.key in keys]
        return tuple(chosen)

    def numbers(self) -> Mapping[str, Number]:
        """The numbers by the keys of their columns."""
        return vars(self)


def titles_missing_in_trial(trial: Trial, made: Container[str]) -> str:
    """A sentence that names the methods of a run whose models are not there; "" where all are."""
    missing = [title for title in trial.methods if title not in made]
    if not missing:
        return ""
    titles = ", ".join(missing)
    return f"Not made yet: {titles}."


def evaluation_of_rows(
    trial: Trial,
    columns: Sequence[Column],
    rows: Mapping[str, Sequence[ResultRow]],
    *,
    data: str,
    model: str | None = None,
    notes: Sequence[str] = (),
) -> Evaluation:
    """The rows of each method, by its title and text by text, as an evaluation; `notes` are sentences for the page.

    `model` is what the page calls the model; by default its name.
    """
    first_rows = next(iter(rows.values()))
    settings = {"seed": trial.seed, "level": LEVEL, "limit": len(first_rows)}
    cells: list[Cell] = []
    for title, rows_of_method in rows.items():
        for column in columns:
            values = []
            for row in rows_of_method:
                values.append(row_value_or_nothing(row.numbers()[column.key], column))
            cells.append(table_cell(title, column, values, level=LEVEL, seed=trial.seed))
    return Evaluation(
        model=trial.model.name if model is None else model,
        data=data,
        methods=tuple(rows),
        columns=tuple(columns),
        cells=tuple(cells),
        texts=(),
        settings=settings,
        notes=tuple(notes),
    )


def row_value_or_nothing(number: Number, column: Column) -> float | Share:
    """What is not defined for a text: NaN, or nothing of nothing."""
    if number is not None:
        return number
    if column.pooled:
        return Share(0, 0)
    return float("nan")
