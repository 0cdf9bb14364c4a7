"""Evaluation, the record of methods × numbers and curves on the same texts, with intervals."""

from __future__ import annotations

from dataclasses import dataclass, field

from raison.core.errors import InputError
from raison.core.findings import PredictionSummary
from raison.core.json_record import JsonObject, Record, json_field, records_field

__all__ = [
    "Cell",
    "Column",
    "EvaluatedText",
    "Evaluation",
    "MethodAxis",
    "curve_title",
    "target_probability",
]

Curves = dict[str, dict[str, list[float]]]  # key -> method -> values
Costs = dict[str, dict[str, float]]  # method, or "metrics" -> what was spent -> how much
UnitScores = dict[str, list[list[str | float]]]  # method -> [[name of a unit, score], …]


@dataclass(frozen=True, eq=False)
class Column(Record):
    """One number that a metric gives: a column of the table."""

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
class EvaluatedText(Record):
    """One text of an evaluation, and what the model says about it."""

    id: str
    text: str
    pair: str | None = None
    label: object = None
    target: str = ""  # what was explained
    probability: float | None = None
    units: UnitScores = field(default_factory=dict)  # shown for the best and worst texts


@dataclass(frozen=True, eq=False)
class Evaluation(Record):
    """Methods × numbers, on one data set and one model."""

    model: str
    data: str
    methods: tuple[str, ...]  # specs
    columns: tuple[Column, ...] = records_field("Column")
    cells: tuple[Cell, ...] = records_field("Cell")  # method by method, column by column
    texts: tuple[EvaluatedText, ...] = records_field("EvaluatedText")
    curves: Curves = json_field()  # means over the texts
    settings: JsonObject = json_field()  # split, limit, removal, units, target, seed, level
    # what a reader must know: broken records, texts that were cut or left out
    notes: tuple[str, ...] = ()
    costs: Costs = json_field(apart=True)

    def validate(self) -> None:
        if len(self.cells) != len(self.methods) * len(self.columns):
            raise InputError("An evaluation needs a cell for each method and column.")

    def has_key(self, key: str) -> bool:
        """Whether there is a curve or a column of this name."""
        columns = [column.key for column in self.columns]
        return key in self.curves or key in columns

    def column(self, key: str) -> Column:
        """The column of this key."""
        for column in self.columns:
            if column.key == key:
                return column
        raise InputError(f"This evaluation has no {key!r}.")

    def cell(self, method: str, key: str) -> Cell:
        """The number of a method in a column."""
        for cell in self.cells:
            if cell.method == method and cell.key == key:
                return cell
        raise InputError(f"This evaluation has no {key!r} of {method!r}.")


@dataclass(frozen=True)
class MethodAxis:
    """Where methods stand below a picture of one number of each."""

    label: str  # what the positions are
    positions: dict[str, float]  # of methods; those without one are drawn as levels
    # each as far from the next, whatever its position, which is written below it
    even: bool = False
    slanted: bool = False  # positions are written aslant


def curve_title(key: str) -> str:
    """What a curve is called in a picture: the name of its number (`aopc` of `aopc_curve`)."""
    return key.removesuffix("_curve")


def target_probability(prediction: PredictionSummary | None) -> float | None:
    """The probability of the target, where the prediction tells it."""
    if prediction is None:
        return None
    if prediction.target_probability is not None:
        return prediction.target_probability
    if prediction.is_target:
        return prediction.probability
    return None
