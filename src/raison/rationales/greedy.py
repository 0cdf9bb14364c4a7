"""Greedy search, the published algorithm: add what helps most until it is enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.parameters import check_integer
from raison.rationales.problem import Policy, Problem, sets_with_each_turned
from raison.rationales.search import Search, search

__all__ = ["Greedy", "grow_greedily"]


@search("greedy")
@dataclass(frozen=True)
class Greedy(Search):
    """Add the unit that raises the probability of the target most, until what is there is enough.

    S ← S ∪ {argmax_k p(y | S ∪ {k})} until argmax p(· | S) = y (Vafa et al. 2021, Algorithm 1), from the tokens that
    can't be removed, in the paper the previous one. Kept literal, for comparison: see `refined` for shorter ones.
    """

    largest: int | None = None  # units, at most; None: as many as it takes

    paper = "Vafa et al. 2021 (P0)"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.largest is not None:
            check_integer("largest", self.largest, 0)

    def policy(self, problem: Problem) -> Policy:
        return grow_greedily(problem, self.largest)


def grow_greedily(problem: Problem, largest: int | None = None) -> Policy:
    """Add the best unit until no larger set can cost less than the best found."""
    judged = yield problem.nothing[None]
    chosen = problem.nothing
    problem.consider(judged, 0)
    problem.record_step("start", judged, 0)
    if not judged.enough[0]:
        problem.lower_bound = max(problem.lower_bound, 1)
    limit = problem.size
    if largest is not None:
        limit = min(largest, problem.size)

    while chosen.sum() < limit:
        size = int(chosen.sum()) + 1
        if problem.settled(size):
            return
        absent = np.flatnonzero(~chosen)
        judged = yield sets_with_each_turned(chosen, absent)
        if len(judged) == problem.size and problem.lower_bound == 1 and not judged.enough.any():
            problem.lower_bound = 2

        row = judged.best()
        problem.record_step("add", judged, row, chosen)
        problem.consider(judged, row)
        chosen = judged.sets[row]

    if limit < problem.size and not problem.improved:
        problem.status = "budget"
