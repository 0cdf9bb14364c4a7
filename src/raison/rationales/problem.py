"""One rationale to be found: which sets may be asked about, and what the answers mean.

A set is a Boolean vector over units. What is no unit is always there: fixed tokens, and the token that the model reads
its answer from.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from raison.core.errors import InputError
from raison.core.records import Encoding, Target, Units
from raison.models.protocol import Question, Scored
from raison.rationales.sufficient import Argmax, Probability, Rule, Share

__all__ = ["Found", "Judged", "Policy", "Problem"]

BEST = 5  # candidates remembered at each step (P0, Figure 2)


@dataclass
class Judged:
    """Answers about n sets, as a search reads them."""

    sets: np.ndarray  # [n u]
    value: np.ndarray  # [n] log-probability of the target, or what the model gives
    climb: np.ndarray  # [n] what leads fastest to a set that is enough
    enough: np.ndarray  # [n]
    cost: np.ndarray  # [n] to be minimised
    tie: float  # values closer than this are equal

    def __len__(self) -> int:
        return len(self.value)

    def best(self) -> int:
        """The set of the highest value; of equal ones the first, which changes the lowest position."""
        return first_of_the_highest(self.value, self.tie)

    def steepest(self) -> int:
        """The set that promises most."""
        return first_of_the_highest(self.climb, self.tie)

    def cheapest(self) -> int:
        """The set of the lowest cost; of equal ones the one that promises most."""
        least = np.flatnonzero(self.cost <= self.cost.min())
        return int(least[first_of_the_highest(self.climb[least], self.tie)])


def first_of_the_highest(values: np.ndarray, tie: float) -> int:
    return int(np.argmax(values >= values.max() - tie))


@dataclass
class Found:
    """A set that was evaluated."""

    chosen: np.ndarray  # [u]
    value: float
    enough: bool
    cost: float


# A policy yields sets [n u] to be asked about and is sent what they are worth; it ends when it has nothing to ask.
Policy = Generator[np.ndarray, Judged, Any]


@dataclass
class Problem:
    """The state of one search: the sets asked, the best found, the steps taken, and what it cost."""

    encoding: Encoding
    target: Target
    units: Units
    rule: Rule | None = None  # None: chosen when the whole context has been seen
    budget: int | None = None  # evaluations
    hint: np.ndarray | None = None  # [u] scores of an attribution method
    tie: float = 0.0
    predicted: bool | None = None  # a span is chosen as a whole: only the model can say whether it is its own
    full: Scored | None = None
    best: Found | None = None
    steps: list[dict[str, Any]] = field(default_factory=list)
    order: list[int] = field(default_factory=list)  # units in the order they joined
    lower_bound: int = 0  # no set of fewer units is enough
    proved: bool = False  # nothing costs less than the best
    improved: bool = False  # something better than the whole context was found
    finished: bool = False  # the policy has come to its end
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)  # what else a policy has to say
    refuted: set[bytes] = field(default_factory=set)  # sets that an independent evaluation found not to be enough
    share: float = 0.0  # of the work that is done, where a policy knows it
    evaluations: int = 0
    tokens: int = 0  # pushed through the blocks by the search
    check: Scored | None = None  # the best set, evaluated anew
    check_tokens: int = 0
    status: str = "complete"  # complete | budget | interrupted | impossible (neither all nor a part that was tried)

    @property
    def size(self) -> int:
        return len(self.units)

    @property
    def nothing(self) -> np.ndarray:
        return np.zeros(self.size, bool)

    @property
    def everything(self) -> np.ndarray:
        return np.ones(self.size, bool)

    @property
    def probable(self) -> bool:
        """Values are log-probabilities of the target."""
        return self.target.output == "log_prob" and self.target.contrast is None

    # -- asking -----------------------------------------------------------------------------------------

    def question(self, sets: np.ndarray) -> Question:
        return Question(self.encoding, self.target, self.units.keep(sets))

    def judge(self, sets: np.ndarray, scored: Scored) -> Judged:
        value = scored.value.sum(-1)
        enough = self.rule.enough(scored, self.full)  # type: ignore[union-attr, arg-type]
        if self.refuted:
            enough = enough & np.array([row.tobytes() not in self.refuted for row in sets], bool)
        cost = self.rule.cost(sets.sum(1), value, enough)  # type: ignore[union-attr]
        return Judged(sets, value, self.rule.climb(scored), enough, cost, self.tie)  # type: ignore[union-attr]

    def floor(self, size: int) -> float:
        """No set of this size or larger costs less."""
        return self.rule.floor(size, self.probable)  # type: ignore[union-attr]

    def settled(self, size: int) -> bool:
        """Nothing of this size or larger can be better than what was found."""
        return self.best is not None and self.floor(size) >= self.best.cost

    def open(self) -> None:
        """With the whole context known: is the target the model's own choice, and what will be enough?"""
        full = self.full
        assert full is not None
        if self.rule is None:
            contrast = self.target.contrast is not None
            several = contrast or bool((full.margin != 0).any())  # one outcome alone is always the first choice
            probable = self.target.output == "log_prob"
            self.rule = Argmax() if self.own and several else Probability() if probable else Share()
            if several and not self.own and self.predicted:
                self.notes.append(
                    "Start and end of this answer are not each the first choice, only together: a context is enough "
                    "that keeps 90 % of their probability."
                )
            elif several and not self.own:
                choice = f"does not beat {self.target.contrast_text!r}" if contrast else "is not the model's own choice"
                kept = "value" if not probable else "odds" if contrast else "probability"
                self.notes.append(
                    f"Since {self.target.text!r} {choice}, a context is enough that keeps 90 % of its {kept}."
                )
        elif isinstance(self.rule, Probability) and self.target.output != "log_prob":
            raise InputError("This model gives values, not probabilities: use share(tau=0.9) instead of probability.")

    def restart(self) -> None:
        """Begin with the whole context as the best known; what was refuted stays refuted."""
        self.best, self.check, self.steps, self.order = None, None, [], []
        self.offer(self.judge(self.everything[None], self.full), 0)  # type: ignore[arg-type]
        self.proved = self.improved = self.finished = False

    @property
    def own(self) -> bool:
        """The target is what the model predicts from the whole context (or beats its contrast there)."""
        return bool(Argmax().enough(self.full, self.full)[0])  # type: ignore[arg-type]

    @property
    def holds(self) -> bool:
        """The best set is enough by an evaluation of its own."""
        return self.check is not None and bool(self.rule.enough(self.check, self.full)[0])  # type: ignore[union-attr, arg-type]

    # -- taking note --------------------------------------------------------------------------------------

    def offer(self, judged: Judged, row: int) -> bool:
        """Remember a set if it is the best so far."""
        if self.best is not None and not judged.cost[row] < self.best.cost:
            return False
        self.improved = self.best is not None
        self.best = Found(
            judged.sets[row].copy(), float(judged.value[row]), bool(judged.enough[row]), float(judged.cost[row])
        )
        return True

    def step(self, action: str, judged: Judged, row: int, before: np.ndarray | None = None) -> None:
        """Put a step on record, with the best candidates that it was chosen from."""
        chosen = judged.sets[row]
        before = self.nothing if before is None else before
        added = [int(u) for u in np.flatnonzero(chosen & ~before)]
        removed = [int(u) for u in np.flatnonzero(before & ~chosen)]
        self.order = [u for u in self.order if chosen[u]] + [u for u in added if u not in self.order]
        entry: dict[str, Any] = {
            "action": action,
            "added": added,
            "removed": removed,
            "chosen": [int(u) for u in np.flatnonzero(chosen)],
            "size": int(chosen.sum()),
            "value": float(judged.value[row]),
            "enough": bool(judged.enough[row]),
            "candidates": self.candidates(judged, before),
        }
        if self.probable:
            entry["probability"] = float(np.exp(judged.value[row]))
        self.steps.append(entry)

    def candidates(self, judged: Judged, before: np.ndarray) -> list[list[Any]]:
        """The best sets of a step, each by the one unit in which it differs from the set before."""
        changed = judged.sets != before
        single = np.flatnonzero(changed.sum(1) == 1)
        ranked = single[np.argsort(-judged.value[single], kind="stable")[:BEST]]
        return [[int(np.flatnonzero(changed[row])[0]), float(judged.value[row])] for row in ranked]


def with_each(chosen: np.ndarray, units: Sequence[int] | np.ndarray) -> np.ndarray:
    """[n u] the set with each of `units` turned round: added if it is absent, removed if it is there."""
    units = np.asarray(units, dtype=np.int64)
    sets = np.repeat(chosen[None], len(units), axis=0)
    sets[np.arange(len(units)), units] ^= True
    return sets
