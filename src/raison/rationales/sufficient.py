"""Rules of sufficiency: when a part of the context is enough, and what a set costs under them.

A search minimises `cost`: the number of units of a set that is enough, or λ|S| − log p for the soft objective.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar, TypeVar

import numpy as np

from raison.core.errors import InputError
from raison.core.parameters import check_in_range, check_integer
from raison.core.registry import rules
from raison.core.spec import Spec
from raison.models.protocol import Scored

__all__ = ["Argmax", "Drop", "Penalty", "Probability", "Rule", "Share", "Top", "rule_from_spec"]

R = TypeVar("R", bound="type[Rule]")


def rule(name: str) -> Callable[[R], R]:
    """Register a rule under the name that users type."""
    return rules.named(name)


@dataclass(frozen=True)
class Rule(ABC):
    """Parameters only; `full` is the answer for the whole context."""

    name: ClassVar[str]

    @abstractmethod
    def enough(self, scored: Scored, full: Scored) -> np.ndarray:
        """[n] whether each set alone gives the prediction."""

    def climb(self, scored: Scored) -> np.ndarray:
        """[n] what leads a search fastest to a set that is enough."""
        values: np.ndarray = scored.value.sum(-1)
        return values

    def cost(self, sizes: np.ndarray, value: np.ndarray, enough: np.ndarray) -> np.ndarray:
        """[n] what a search minimises; infinite where the set is not enough."""
        return np.where(enough, sizes, np.inf)

    def floor(self, size: int, probable: bool) -> float:
        """No set of this size or larger costs less; `probable`: values are log-probabilities."""
        return size

    def spec(self) -> Spec:
        """How to write this rule, with all of its parameters."""
        params = {item.name: getattr(self, item.name) for item in fields(self)}
        return Spec(self.name, params)


@rule("argmax")
@dataclass(frozen=True)
class Argmax(Rule):
    """The target stays the model's first choice (every token of it), or beats its contrast (P0, Eq. 3)."""

    def enough(self, scored: Scored, full: Scored) -> np.ndarray:
        return np.asarray((scored.margin > 0).all(-1))  # a tie is no choice

    def climb(self, scored: Scored) -> np.ndarray:
        # probability alone also rises for sets that make everything likelier that fits; the lead alone is blind
        # before the target is among the first choices: half of each needs fewest steps (benchmarks/rationales.py)
        value = scored.value.sum(-1)
        lead = scored.margin.min(-1)
        return np.asarray((value + lead) / 2)


@rule("probability")
@dataclass(frozen=True)
class Probability(Rule):
    """The target keeps a share τ of the probability (against a contrast: the odds) that the whole context gives it."""

    tau: float = 0.9

    def __post_init__(self) -> None:
        check_in_range("tau", self.tau, 0, 1)

    def enough(self, scored: Scored, full: Scored) -> np.ndarray:
        lowest = full.value.sum(-1) + np.log(self.tau)
        return np.asarray(scored.value.sum(-1) >= lowest)


@rule("share")
@dataclass(frozen=True)
class Share(Rule):
    """The value keeps at least a share τ of itself: for functions and regressions, which give no probabilities."""

    tau: float = 0.9

    def __post_init__(self) -> None:
        check_in_range("tau", self.tau, 0, 1)

    def enough(self, scored: Scored, full: Scored) -> np.ndarray:
        whole = full.value.sum(-1)
        lowest = whole - (1 - self.tau) * np.abs(whole)
        return np.asarray(scored.value.sum(-1) >= lowest)


@rule("drop")
@dataclass(frozen=True)
class Drop(Rule):
    """The log-probability of the target (of a whole answer) drops by at most so many nats."""

    nats: float = 1.0

    def __post_init__(self) -> None:
        check_in_range("nats", self.nats, 0)

    def enough(self, scored: Scored, full: Scored) -> np.ndarray:
        lowest = full.value.sum(-1) - self.nats
        return np.asarray(scored.value.sum(-1) >= lowest)


@rule("top")
@dataclass(frozen=True)
class Top(Rule):
    """The target (every token of it) is among the model's k first choices."""

    k: int = 5

    def __post_init__(self) -> None:
        check_integer("k", self.k, 1)

    def enough(self, scored: Scored, full: Scored) -> np.ndarray:
        return np.asarray((scored.rank < self.k).all(-1))


@rule("penalty")
@dataclass(frozen=True)
class Penalty(Rule):
    """No threshold: minimise λ|S| − log p of the target, λ being the weight (P0, Eq. 8)."""

    weight: float = 0.1

    def __post_init__(self) -> None:
        check_in_range("weight", self.weight, 0)

    def enough(self, scored: Scored, full: Scored) -> np.ndarray:
        return np.ones(len(scored.value), bool)

    def cost(self, sizes: np.ndarray, value: np.ndarray, enough: np.ndarray) -> np.ndarray:
        return np.where(enough, self.weight * sizes - value, np.inf)

    def floor(self, size: int, probable: bool) -> float:
        # −log p is never below 0, other values have no bound
        if not probable:
            return -np.inf
        return self.weight * size


def rule_from_spec(given: object) -> Rule | None:
    """The rule of a spec such as "probability(tau=0.8)"; None: what suits the target."""
    if given is None or isinstance(given, Rule):
        return given
    if not isinstance(given, (str, Spec)):
        raise InputError(
            f"A {type(given).__name__} is not a rule: write one, such as 'probability(tau=0.9)'."
        )
    built: Rule = rules.build(given)
    return built
