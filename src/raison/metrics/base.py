"""What a metric is: parameters that turn one explanation into named numbers.

A metric may ask the model about kept sets of units. It does so as a generator: it yields `KeptSets`, is sent the
model's `Answers`, and returns its numbers. So whoever evaluates can put the questions of all metrics about all methods
and texts into one call, and no set is run twice (runner.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from raison.core.errors import Unsupported
from raison.core.parameters import changed_parameters
from raison.core.records import Explanation
from raison.core.registry import metrics
from raison.core.spec import Spec
from raison.metrics.keys import MetricKey, ValueRange
from raison.metrics.numbers import AveragedF1, Number, Numbers, Share
from raison.metrics.questions import Answers, KeptSets, MetricQuestions
from raison.metrics.subject import Subject, gold_share, gold_units
from raison.models.protocol import Model

# with what the file of a metric needs
__all__ = [
    "Answers",
    "AveragedF1",
    "KeptSets",
    "Metric",
    "MetricKey",
    "MetricQuestions",
    "Number",
    "Numbers",
    "Share",
    "Subject",
    "ValueRange",
    "check_subject",
    "gives_probabilities",
    "gold_share",
    "gold_units",
    "metric",
]

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


def check_subject(metric: Metric, subject: Subject) -> None:
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
    if "probability" in metric.needs and not gives_probabilities(model):
        raise Unsupported(f"{metric.name} compares probabilities, and {model.name} gives none.")
    if "choice" in metric.needs and not decides(model, subject.explanation):
        raise Unsupported(
            f"{metric.name} waits for another decision, and {model.name} tells one number."
        )


def gives_probabilities(model: Model | None) -> bool:
    """Whether the model's values are probabilities of its outcomes."""
    return model is not None and model.probable


def decides(model: Model, explanation: Explanation) -> bool:
    """Whether a model decides between outcomes; a regression, or a function with one score, does not."""
    if model.problem == "regression":
        return False
    prediction = explanation.prediction
    return prediction is None or len(prediction.top) != 1
