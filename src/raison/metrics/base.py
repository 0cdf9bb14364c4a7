"""What a metric is: parameters that turn one explanation into named numbers.

A metric may ask the model about kept sets of units. It does so as a generator: it yields a `Kept`, is sent what the
model said, and returns its numbers. So whoever evaluates can put the questions of all metrics about all methods and
texts into one call, and no set is run twice (asking.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np

from raison.core.errors import InputError, Unsupported
from raison.core.records import Encoding, Example, Explanation, Units
from raison.core.registry import metrics
from raison.core.spec import Spec
from raison.models.protocol import Model

__all__ = [
    "Asking",
    "AveragedF1",
    "Kept",
    "Metric",
    "Said",
    "Share",
    "Subject",
    "check_subject",
    "gold_units",
    "metric",
]

M = TypeVar("M", bound="type[Metric]")


@dataclass(frozen=True)
class Kept:
    """A question to the model: what becomes of the target when only these units are there?"""

    units: np.ndarray  # [n u] True = kept
    output: str = "prob"  # prob: the target's probability; value: what the scores explain, e.g. its logit


@dataclass(frozen=True)
class Said:
    """What the model said about each kept set."""

    value: np.ndarray  # [n] probability of the target (of all its tokens), or its value; see `Kept.output`
    log: np.ndarray  # [n] its logarithm, where it is a probability; else the value itself
    predicted: np.ndarray  # [n m] the best outcome of each token of the target


@dataclass(frozen=True)
class Share:
    """A number that is pooled over a corpus: the sum of parts by the sum of wholes, not the mean of ratios."""

    part: float
    whole: float

    def __float__(self) -> float:
        return self.part / self.whole if self.whole else float("nan")


@dataclass(frozen=True)
class AveragedF1:
    """What one text adds to the F1 of two averages: sums and counts of precisions and of recalls.

    Over a corpus P = Σ precisions / Σ their count, R likewise, and F1 = 2 P R / (P + R), which is not the mean of the
    texts' F1. Where there is nothing to divide by it is 0.
    """

    precision: Share
    recall: Share

    @property
    def sums(self) -> tuple[float, float, float, float]:
        return self.precision.part, self.precision.whole, self.recall.part, self.recall.whole

    def __float__(self) -> float:
        if not self.precision.whole and not self.recall.whole:
            return float("nan")
        p, r = (float(each) if each.whole else 0.0 for each in (self.precision, self.recall))
        return 2 * p * r / (p + r) if p and r else 0.0


# numbers by name; an array is a curve, on the same grid for all texts
Asking = Generator[Kept, Said, dict[str, "float | Share | AveragedF1 | np.ndarray"]]


@dataclass(frozen=True)
class Subject:
    """One explanation, and what is known about its text."""

    explanation: Explanation
    example: Example | None = None  # with the gold rationale and the gold label
    model: Model | None = None
    removal: str | None = None  # None: the model's default
    seed: int = 0
    gold_share: float | None = None  # mean share of gold units in the data set: how long a rationale is there
    again: Callable[[Any], np.ndarray] | None = (
        None  # scores [u] of the same method for the same target by another model
    )
    cache: dict[Any, Any] = field(default_factory=dict)  # what metrics of one evaluation share, e.g. randomised models

    @property
    def units(self) -> Units:
        return self.explanation.units

    @property
    def scores(self) -> np.ndarray:
        return self.explanation.scores

    @cached_property
    def ranking(self) -> np.ndarray:
        """[u] units from the most important to the least; of equal ones the first in the text comes first.

        A rationale comes first in the order in which it was found, whatever its scores.
        """
        by_score = np.argsort(-self.scores, kind="stable")
        if self.explanation.selected is None:
            return by_score
        order = self.explanation.order if self.explanation.order is not None else np.array([], np.int64)
        first = [int(u) for u in order if self.explanation.selected[u]]
        first += [int(u) for u in by_score if self.explanation.selected[u] and u not in first]
        return np.array(first + [int(u) for u in by_score if u not in set(first)], dtype=np.int64)

    @cached_property
    def gold(self) -> np.ndarray:
        """[u] units that share a character with the human rationale; none in a text where people marked nothing."""
        if self.example is None or not (self.example.gold or self.gold_share is not None):
            raise InputError("This text has no human rationale: evaluate plausibility on a data set that has some.")
        return gold_units(self.explanation.encoding, self.units, self.example)

    def best(self, count: int) -> np.ndarray:
        """[u] True for the `count` most important units."""
        chosen = np.zeros(len(self.units), bool)
        chosen[self.ranking[:count]] = True
        return chosen

    def generator(self, salt: str) -> np.random.Generator:
        """Randomness that depends on the example (with its id), the target and the metric alone, not on the method."""
        content = self.explanation.encoding.content() + self.explanation.target.content()
        return np.random.default_rng([self.seed, int(content[:16], 16), *salt.encode()])


def gold_share(encoding: Encoding, units: Units, example: Example) -> float | None:
    """Share of the units that people marked; None where they marked nothing, or all of it was cut off."""
    marks = gold_units(encoding, units, example) if example.gold and len(units) else np.zeros(0, bool)
    return float(marks.mean()) if marks.any() else None


def gold_units(encoding: Encoding, units: Units, example: Example) -> np.ndarray:
    """[u] units that share a character with a gold span of the same text."""
    spans = []
    for span in example.gold:
        name = span.segment or encoding.segments[0]
        if name not in encoding.segments:
            raise InputError(
                f"A gold span is about {name!r}, but this model calls the texts {', '.join(encoding.segments)}: use a "
                "model that is made for such data."
            )
        spans.append((encoding.segments.index(name), span.start, span.end))
    return np.array(
        [
            any(segment == where and start < stop and begin < end for where, begin, stop in spans)
            for segment, start, end in units.spans
        ],
        dtype=bool,
    )


@dataclass(frozen=True)
class Metric(ABC):
    """Parameters only; explanations arrive with the call."""

    name: ClassVar[str]
    paper: ClassVar[str] = ""
    keys: ClassVar[tuple[str, ...]] = ()  # the numbers it returns; the first stands for it in a table
    higher: ClassVar[bool | None] = None  # whether more is better; None: neither
    span: ClassVar[tuple[float, float]] = (-np.inf, np.inf)  # smallest and largest value
    probable_span: ClassVar[tuple[float, float] | None] = None  # the same, where the model gives probabilities
    needs: ClassVar[frozenset[str]] = frozenset()  # of score, gold, gradients, again, probability, choice

    @abstractmethod
    def ask(self, subject: Subject) -> Asking:
        """The numbers of one explanation."""

    def spec(self) -> Spec:
        """How to write this metric: its name and what differs from the defaults."""
        params = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return Spec(self.name, params)


def metric(name: str) -> Callable[[M], M]:
    """Register a metric under the name that users type."""

    def add(cls: M) -> M:
        cls.keys = cls.keys or (name,)
        return metrics.named(name)(cls)

    return add


def check_subject(chosen: Metric, subject: Subject) -> None:
    """One sentence where a metric needs what this subject can't give."""
    if subject.model is None:
        if chosen.needs - {"gold"}:
            raise Unsupported(f"{chosen.name} has to ask the model: name it with --model.")
        return
    missing = (chosen.needs & {"score", "gradients"}) - subject.model.offers
    if missing:
        raise Unsupported(
            f"{chosen.name} needs {' and '.join(sorted(missing))}, which {subject.model.name} can't offer."
        )
    if "probability" in chosen.needs and not subject.model.probable:
        raise Unsupported(f"{chosen.name} compares probabilities, and {subject.model.name} gives none.")
    if "choice" in chosen.needs and not chooses(subject.model, subject.explanation):
        raise Unsupported(f"{chosen.name} waits for another decision, and {subject.model.name} tells one number.")


def chooses(model: Model, explanation: Explanation) -> bool:
    """Whether a model decides between outcomes; a regression, or a function with one score, does not."""
    prediction = explanation.prediction
    one_number = prediction is not None and len(prediction.top) == 1
    return model.problem != "regression" and not one_number


def probable(explanation: Explanation) -> Explanation:
    """The same explanation, its target read as a log-probability."""
    return replace(explanation, target=replace(explanation.target, output="log_prob"))
