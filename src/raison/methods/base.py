"""Method, Batch and Answer: a frozen set of parameters that turns a batch of examples into one answer each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import numpy as np

from raison.core.errors import Unsupported
from raison.core.findings import Certificate, SearchStep
from raison.core.parameters import changed_parameters
from raison.core.records import Encoding, Target, Units
from raison.core.registry import methods
from raison.core.spec import Spec
from raison.models.protocol import Model, Scored

__all__ = ["Answer", "Batch", "Method", "check_needs_of_method", "method"]

M = TypeVar("M", bound="type[Method]")


@dataclass(frozen=True)
class Batch:
    """What is to be explained: encodings and targets of the same index belong together."""

    encodings: Sequence[Encoding]
    targets: Sequence[Target]
    units: Sequence[Units]
    removal: str | None = None  # None: the model's default
    seed: int = 0
    # what the whole text gives each target, where that is known already
    whole: Sequence[Scored | None] = ()
    # whether the target is what the model says about the whole text, likewise
    predicted: Sequence[bool | None] = ()

    def __len__(self) -> int:
        return len(self.encodings)

    def generator(self, index: int) -> np.random.Generator:
        """Randomness of one example, from its content and id: neighbours and batch size can't matter."""
        content = self.encodings[index].content() + self.targets[index].content()
        seed_of_content = int(content[:16], 16)
        return np.random.default_rng([self.seed, seed_of_content])


@dataclass
class Answer:
    """What a method says about one example, on its own axis."""

    scores: np.ndarray  # [t] or [u]
    order: np.ndarray | None = None
    selected: np.ndarray | None = None
    certificate: Certificate | None = None
    steps: tuple[SearchStep, ...] = ()
    notes: tuple[str, ...] = ()
    parts: dict[str, object] = field(default_factory=dict)
    diagnostics: dict[str, object] = field(default_factory=dict)
    # fitted things that were used: name -> content hash
    artifacts: dict[str, str] = field(default_factory=dict)
    cost: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Method(ABC):
    """Parameters only; data arrives with the call.

    What a class sets once (`needs = frozenset({"score"})`) may depend on the parameters of an instance: then it is a
    property there, too.
    """

    name: ClassVar[str]
    paper: ClassVar[str] = ""
    # token: scores [t], gathered to units by explain(); unit: scores [u]
    axis: ClassVar[str] = "token"
    pooling: ClassVar[str] = "max"  # where scores do not add up: max, the largest in size, or mean
    # what it reads in a plain trace of the whole text, if it does
    watches: ClassVar[frozenset[str]] = frozenset()

    @property
    def needs(self) -> frozenset[str]:
        """What a model has to offer."""
        return frozenset()

    @property
    def signed(self) -> bool:
        """Scores are for and against, not only sizes."""
        return True

    @property
    def additive(self) -> bool:
        """Scores add up, so that the score of a word is the sum over its tokens."""
        return False

    @abstractmethod
    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        """One answer per example of the batch."""

    @property
    def aggregation(self) -> str:
        """How the scores of tokens make the score of a unit: sum, max or mean."""
        if self.additive:
            return "sum"
        return self.pooling

    def scores_of_units(self, scores: np.ndarray, units: Units) -> np.ndarray:
        """[u] of [t]: the sum where scores add up, else the largest in size or the mean."""
        inside = units.of >= 0
        unit_of_token = units.of[inside]
        if self.aggregation == "max":
            return largest_in_size(scores[inside], unit_of_token, len(units))

        total = np.bincount(unit_of_token, weights=scores[inside], minlength=len(units))
        if self.aggregation == "sum":
            return total
        return total / np.bincount(unit_of_token, minlength=len(units))

    def spec(self) -> Spec:
        """How to write this method: its name and what differs from the defaults."""
        return Spec(self.name, changed_parameters(self))


def largest_in_size(scores: np.ndarray, unit_of_token: np.ndarray, count: int) -> np.ndarray:
    """[u] of each unit the score of the token whose score is furthest from zero; of equal ones the first."""
    largest = np.zeros(count)
    for unit, score in zip(unit_of_token, scores, strict=True):
        if abs(score) > abs(largest[unit]):
            largest[unit] = score
    return largest


def method(name: str) -> Callable[[M], M]:
    """Register a method under the name that users type."""
    return methods.named(name)


def check_needs_of_method(chosen: Method, model: Model) -> None:
    """One sentence when the model can't give what the method needs, with methods that would work."""
    missing = chosen.needs - model.offers
    if not missing:
        return
    able_methods = []
    for name in methods:
        candidate: Method = methods.build(name)
        if candidate.needs <= model.offers:
            able_methods.append(name)
    able = ", ".join(able_methods)
    if missing == {"own"}:
        raise Unsupported(
            f"{model.name} does not explain itself, which {chosen.name} reads: train a model that does (raison train "
            f"classifier), or use one of {able}."
        )
    if missing == {"heads"}:
        raise Unsupported(
            f"{chosen.name} needs to know which heads of {model.name} matter: find out with `raison heads` and pass "
            f"its file as heads=FILE, or use one of {able}."
        )
    lacking = " and ".join(sorted(missing))
    raise Unsupported(
        f"{chosen.name} needs {lacking}, which {model.name} can't offer: use one of {able}."
    )
