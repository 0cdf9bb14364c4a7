"""The result of an evaluation: methods × numbers on the same texts, with intervals; plain, frozen, JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from raison.core.errors import InputError
from raison.core.findings import PredictionSummary
from raison.core.json_record import Record, plain, records

__all__ = ["Cell", "Column", "Evaluation", "Seen", "likelihood"]


@dataclass(frozen=True, eq=False)
class Column(Record):
    """One number that a metric gives."""

    key: str  # e.g. comprehensiveness
    metric: str  # the spec that gives it
    higher: bool | None = None  # whether more is better
    pooled: bool = False  # made of sums over the corpus (their ratio, the F1 of averages), not an average of ratios
    paper: str = ""


@dataclass(frozen=True, eq=False)
class Cell(Record):
    """A number of a method over all texts."""

    method: str
    key: str
    value: float | None  # None: defined for no text
    low: float | None  # of the confidence interval
    high: float | None
    each: tuple[float | None, ...]  # text by text; None where it is not defined
    parts: tuple[float, ...] | None = None  # of pooled numbers: Σ parts / Σ wholes
    wholes: tuple[float, ...] | None = None
    # of the F1 of averages: `parts` and `wholes` are those of the precision, these of the recall
    recall_parts: tuple[float, ...] | None = None
    recall_wholes: tuple[float, ...] | None = None

    @property
    def count(self) -> int:
        """How many texts it is defined for."""
        return sum(value is not None for value in self.each)


@dataclass(frozen=True, eq=False)
class Seen(Record):
    """One text of an evaluation, and what the model said about it."""

    id: str
    text: str
    pair: str | None = None
    label: Any = None
    target: str = ""  # what was explained
    probability: float | None = None
    units: dict[str, Any] = field(default_factory=dict)  # method -> [[name, score], …], for the best and worst texts


@dataclass(frozen=True, eq=False)
class Evaluation(Record):
    """Methods × numbers, on one data set and one model."""

    model: str
    data: str
    methods: tuple[str, ...]  # specs
    columns: tuple[Column, ...] = records("Column")
    cells: tuple[Cell, ...] = records("Cell")  # method by method, column by column
    texts: tuple[Seen, ...] = records("Seen")
    curves: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # key -> method -> mean curve
    settings: dict[str, Any] = field(default_factory=dict)  # split, limit, removal, units, target, seed, level
    notes: tuple[str, ...] = ()  # what a reader must know: broken records, texts that were cut or left out
    # of each method, and of the "metrics"
    costs: dict[str, dict[str, float]] = field(default_factory=dict, metadata={"apart": True})

    def validate(self) -> None:
        if len(self.cells) != len(self.methods) * len(self.columns):
            raise InputError("An evaluation needs a cell for each method and column.")
        for name in ("curves", "settings", "costs"):
            object.__setattr__(self, name, plain(getattr(self, name)))

    def cell(self, method: str, key: str) -> Cell:
        """The number of a method in a column."""
        for each in self.cells:
            if (each.method, each.key) == (method, key):
                return each
        raise InputError(f"This evaluation has no {key!r} of {method!r}.")


def likelihood(prediction: PredictionSummary | None) -> float | None:
    """The probability of the target, where the prediction tells it."""
    if prediction is None:
        return None
    if prediction.target_probability is not None:
        return prediction.target_probability
    return prediction.probability if prediction.is_target else None
