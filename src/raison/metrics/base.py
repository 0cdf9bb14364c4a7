"""What a metric is (`Metric`): the keys of its numbers, the kept sets it asks the model about, and the answers it gets.

A metric may ask the model about kept sets of units. It does so as a generator: it yields `KeptSets`, is sent the
model's `Answers`, and returns its numbers. So whoever evaluates can put the questions of all metrics about all methods
and texts into one call, and no set is run twice (metric_runner.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal, TypeVar

import numpy as np

from raison.core.errors import Unsupported
from raison.core.parameters import changed_parameters
from raison.core.records import Explanation
from raison.core.registry import metrics
from raison.core.spec import Spec
from raison.metrics.metric_subject import Subject, gold_share, gold_units
from raison.metrics.numbers import AveragedF1, Number, Numbers, Share
from raison.models.protocol import Model

__all__ = [
    "ANY_NUMBER",
    "FROM_0_TO_1",
    "FROM_MINUS_1_TO_1",
    "NOT_NEGATIVE",
    "Answers",
    "AveragedF1",
    "Direction",
    "KeptSets",
    "Metric",
    "MetricKey",
    "MetricQuestions",
    "Number",
    "Numbers",
    "Share",
    "Subject",
    "ValueRange",
    "check_subject_of_metric",
    "gold_share",
    "gold_units",
    "metric",
    "model_gives_probabilities",
]

Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class ValueRange:
    """The smallest and the largest value of a number."""

    low: float = -inf
    high: float = inf


ANY_NUMBER = ValueRange()
NOT_NEGATIVE = ValueRange(low=0.0)
FROM_0_TO_1 = ValueRange(0.0, 1.0)
FROM_MINUS_1_TO_1 = ValueRange(-1.0, 1.0)


@dataclass(frozen=True)
class MetricKey:
    """One number of a metric: its name, and how to read it."""

    name: str  # by which `Metric.ask` returns it
    direction: Direction | None = None  # which values are better; None: neither
    curve: bool = False  # an array of values instead of one
    pooled: bool = False  # a `Share` or an `AveragedF1`, which are summed over the corpus
    range: ValueRange = ANY_NUMBER
    # the same, where the model gives probabilities
    range_of_probabilities: ValueRange | None = None

    @property
    def higher_is_better(self) -> bool | None:
        """True or False for a number with a direction, None for one without."""
        if self.direction is None:
            return None
        return self.direction == "higher"

    def range_for(self, *, probabilities: bool) -> ValueRange:
        """The range of this number for a model that gives probabilities, or for one that does not."""
        if probabilities and self.range_of_probabilities is not None:
            return self.range_of_probabilities
        return self.range


# prob: the target's probability; value: what the scores explain, e.g. its logit
AskedOutput = Literal["prob", "value"]


@dataclass(frozen=True)
class KeptSets:
    """A question to the model: what becomes of the target when only these units are there?"""

    units: np.ndarray  # [n u] True = kept
    output: AskedOutput = "prob"


@dataclass(frozen=True)
class Answers:
    """The model's answers to one question, one for each kept set."""

    value: (
        np.ndarray
    )  # [n] probability of the target (of all its tokens), or its value; see `KeptSets.output`
    log: np.ndarray  # [n] its logarithm, where it is a probability; else the value itself
    predicted: np.ndarray  # [n m] the best outcome of each token of the target


MetricQuestions = Generator[KeptSets, Answers, Numbers]


M = TypeVar("M", bound="type[Metric]")


@dataclass(frozen=True)
class Metric(ABC):
    """Parameters only; explanations arrive with the call."""

    name: ClassVar[str]
    paper: ClassVar[str] = ""
    keys: ClassVar[
        tuple[MetricKey, ...]
    ]  # the numbers it returns; the first stands for it in a table
    needs: ClassVar[frozenset[str]] = (
        frozenset()
    )  # of score, gold, gradients, again, probability, choice

    @abstractmethod
    def ask(self, subject: Subject) -> MetricQuestions:
        """The numbers of one explanation."""

    @classmethod
    def scalar_keys(cls) -> tuple[MetricKey, ...]:
        """The keys of single numbers, which have a column in a table."""
        return tuple(key for key in cls.keys if not key.curve)

    @classmethod
    def curve_keys(cls) -> tuple[MetricKey, ...]:
        """The keys of curves."""
        return tuple(key for key in cls.keys if key.curve)

    def spec(self) -> Spec:
        """How to write this metric: its name and what differs from the defaults."""
        return Spec(self.name, changed_parameters(self))


def metric(name: str) -> Callable[[M], M]:
    """Register a metric under the name that users type."""
    return metrics.named(name)


def check_subject_of_metric(metric: Metric, subject: Subject) -> None:
    """Refuse in one sentence a subject that can't give what the metric needs."""
    model = subject.model
    if model is None:
        if metric.needs - {"gold"}:
            raise Unsupported(f"{metric.name} has to ask the model: name it with --model.")
        return

    missing = (metric.needs & {"score", "gradients"}) - model.offers
    if missing:
        offers = " and ".join(sorted(missing))
        raise Unsupported(f"{metric.name} needs {offers}, which {model.name} can't offer.")
    if "probability" in metric.needs and not model_gives_probabilities(model):
        raise Unsupported(f"{metric.name} compares probabilities, and {model.name} gives none.")
    if "choice" in metric.needs and not model_decides(model, subject.explanation):
        raise Unsupported(
            f"{metric.name} waits for another decision, and {model.name} tells one number."
        )


def model_gives_probabilities(model: Model | None) -> bool:
    """Whether the model's values are probabilities of its outcomes."""
    return model is not None and model.probable


def model_decides(model: Model, explanation: Explanation) -> bool:
    """Whether a model decides between outcomes; a regression, or a function with one score, does not."""
    if model.problem == "regression":
        return False
    prediction = explanation.prediction
    return prediction is None or len(prediction.top) != 1
