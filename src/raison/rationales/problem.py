"""Problem, the state of one search for a rationale: its target and rule, what answers about sets of units mean, the
best set, the steps taken.

A set is a Boolean vector over units. What is no unit is always there: fixed tokens, and the token that the model reads
its answer from.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import numpy as np

from raison.core.errors import InputError
from raison.core.findings import SearchStep
from raison.core.records import Encoding, Target, Units
from raison.models.protocol import Question, Scored
from raison.rationales.sufficient import Argmax, Probability, Rule, Share

__all__ = ["BestSet", "JudgedSets", "Policy", "Problem", "sets_with_each_turned"]

CANDIDATES = 5  # kept of each step (P0, Figure 2)


@dataclass
class JudgedSets:
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
        return first_of_highest(self.value, self.tie)

    def steepest(self) -> int:
        """The set that promises most."""
        return first_of_highest(self.climb, self.tie)

    def cheapest(self) -> int:
        """The set of the lowest cost; of equal ones the one that promises most."""
        least = np.flatnonzero(self.cost <= self.cost.min())
        return int(least[first_of_highest(self.climb[least], self.tie)])


def first_of_highest(values: np.ndarray, tie: float) -> int:
    return int(np.argmax(values >= values.max() - tie))


@dataclass
class BestSet:
    """The best set that was evaluated."""

    units: np.ndarray  # [u]
    value: float
    enough: bool
    cost: float


# A policy yields sets [n u] to be asked about and is sent what they are worth; it ends when it has nothing to ask.
Policy = Generator[np.ndarray, JudgedSets, None]


@dataclass
class Problem:
    """The state of one search: what is asked for, the best set, the steps taken, and what they cost."""

    encoding: Encoding
    target: Target
    units: Units
    full: Scored  # the answer for the whole context
    rule: Rule
    tie: float = 0.0
    budget: int | None = None  # evaluations
    hint: np.ndarray | None = None  # [u] scores of an attribution method
    is_prediction: bool = True  # the target is what the model predicts from the whole context

    steps: list[SearchStep] = field(default_factory=list)
    order: list[int] = field(default_factory=list)  # units in the order they joined
    lower_bound: int = 0  # no set of fewer units is enough
    proved: bool = False  # nothing costs less than the best
    improved: bool = False  # something better than the whole context was found
    finished: bool = False  # the policy has come to its end
    notes: list[str] = field(default_factory=list)
    # what a hierarchical search kept at each level
    levels: list[dict[str, str | int]] | None = None
    # sets that an independent evaluation found not to be enough
    refuted: set[bytes] = field(default_factory=set)
    progress: float = 0.0  # share of the work that is done, where a policy knows it
    evaluations: int = 0
    search_tokens: int = 0  # pushed through the blocks by the search
    check: Scored | None = None  # the best set, evaluated anew
    check_tokens: int = 0
    status: str = "complete"  # complete | budget | interrupted | impossible (neither all nor a part that was tried)

    def __post_init__(self) -> None:
        self.restart()

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
    def has_probabilities(self) -> bool:
        """Values are log-probabilities of the target."""
        return self.target.output == "log_prob" and self.target.contrast is None

    # -- asking -----------------------------------------------------------------------------------------

    def question(self, sets: np.ndarray) -> Question:
        return Question(self.encoding, self.target, self.units.keep(sets))

    def judge(self, sets: np.ndarray, scored: Scored) -> JudgedSets:
        """What the answers mean under the rule."""
        value = scored.value.sum(-1)
        enough = self.rule.enough(scored, self.full)
        if self.refuted:
            standing = [row.tobytes() not in self.refuted for row in sets]
            enough = enough & np.array(standing, bool)

        cost = self.rule.cost(sets.sum(1), value, enough)
        climb = self.rule.climb(scored)
        return JudgedSets(sets, value, climb, enough, cost, self.tie)

    def settled(self, size: int) -> bool:
        """Nothing of this size or larger can cost less than what was found."""
        return self.rule.floor(size, self.has_probabilities) >= self.best.cost

    def restart(self) -> None:
        """Begin with the whole context as the best known; what was refuted stays refuted."""
        self.check = None
        self.steps = []
        self.order = []
        whole = self.judge(self.everything[None], self.full)
        self.best = best_set_of(whole, 0)
        self.proved = self.improved = self.finished = False

    @property
    def passes_check(self) -> bool:
        """The best set is enough by an evaluation of its own."""
        if self.check is None:
            return False
        enough = self.rule.enough(self.check, self.full)
        return bool(enough[0])

    # -- taking note --------------------------------------------------------------------------------------

    def consider(self, judged: JudgedSets, row: int) -> bool:
        """Remember a set if it is the best so far, and tell whether it is."""
        if not judged.cost[row] < self.best.cost:
            return False
        self.improved = True
        self.best = best_set_of(judged, row)
        return True

    def record_step(
        self, action: str, judged: JudgedSets, row: int, before: np.ndarray | None = None
    ) -> None:
        """Put a step on record, with the best candidates that it was chosen from."""
        units = judged.sets[row]
        if before is None:
            before = self.nothing
        added = unit_indices(units & ~before)
        removed = unit_indices(before & ~units)
        staying = [unit for unit in self.order if units[unit]]
        joining = [unit for unit in added if unit not in self.order]
        self.order = staying + joining

        value = float(judged.value[row])
        probability = None
        if self.has_probabilities:
            probability = float(np.exp(judged.value[row]))
        step = SearchStep(
            action=action,
            size=int(units.sum()),
            added=tuple(added),
            removed=tuple(removed),
            units=tuple(unit_indices(units)),
            value=value,
            probability=probability,
            sufficient=bool(judged.enough[row]),
            candidates=best_single_changes(judged, before),
        )
        self.steps.append(step)


def best_set_of(judged: JudgedSets, row: int) -> BestSet:
    """One of the judged sets, to be remembered as the best."""
    return BestSet(
        units=judged.sets[row].copy(),
        value=float(judged.value[row]),
        enough=bool(judged.enough[row]),
        cost=float(judged.cost[row]),
    )


def unit_indices(units: np.ndarray) -> list[int]:
    """The numbers of the units that are in a set [u]."""
    return [int(unit) for unit in np.flatnonzero(units)]


def best_single_changes(judged: JudgedSets, before: np.ndarray) -> tuple[tuple[int, float], ...]:
    """The best sets of a step, each by the one unit in which it differs from the set before."""
    changed = judged.sets != before
    single = np.flatnonzero(changed.sum(1) == 1)
    best_first = np.argsort(-judged.value[single], kind="stable")
    candidates = []
    for row in single[best_first[:CANDIDATES]]:
        (unit,) = np.flatnonzero(changed[row])
        candidates.append((int(unit), float(judged.value[row])))
    return tuple(candidates)


def sets_with_each_turned(chosen: np.ndarray, units: Sequence[int] | np.ndarray) -> np.ndarray:
    """[n u] the set with each of `units` turned round: added if it is absent, removed if it is there."""
    turned = np.asarray(units, dtype=np.int64)
    rows = np.arange(len(turned))
    sets = np.repeat(chosen[None], len(turned), axis=0)
    sets[rows, turned] ^= True
    return sets


# -- which rule, where the user names none -----------------------------------------------------------------


def is_own_prediction(full: Scored) -> bool:
    """The target is what the model predicts from the whole context (or beats its contrast there)."""
    enough = Argmax().enough(full, full)
    return bool(enough[0])


def default_rule(target: Target, full: Scored, *, predicted: bool | None) -> tuple[Rule, list[str]]:
    """The rule that suits a target when the user names none, and a note where that needs an explanation.

    `predicted` tells of a span whether the model predicts it: a span is chosen as a whole, so only the model knows.
    """
    # one outcome alone is always the first choice
    has_rivals = target.contrast is not None or bool((full.margin != 0).any())
    own = is_own_prediction(full)
    if own and has_rivals:
        return Argmax(), []

    rule: Rule = Share()
    if target.output == "log_prob":
        rule = Probability()
    if not has_rivals:
        return rule, []
    if predicted:
        return rule, [
            "Start and end of this answer are not each the first choice, only together: a context is enough that keeps "
            "90 % of their probability."
        ]
    return rule, [note_on_foreign_target(target)]


def note_on_foreign_target(target: Target) -> str:
    """Why a target that the model does not predict has another rule."""
    reason = "is not the model's own choice"
    quantity = "probability"
    if target.contrast is not None:
        reason = f"does not beat {target.contrast_text!r}"
        quantity = "odds"
    if target.output != "log_prob":
        quantity = "value"
    return f"Since {target.text!r} {reason}, a context is enough that keeps 90 % of its {quantity}."


def check_rule_fits_target(rule: Rule, target: Target) -> None:
    """Refuse a rule about probabilities for a model that gives none."""
    if isinstance(rule, Probability) and target.output != "log_prob":
        raise InputError(
            "This model gives values, not probabilities: use share(tau=0.9) instead of probability."
        )
