"""Exact search: the smallest sufficient set, by looking at all smaller ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb

import numpy as np

from raison.rationales.problem import Policy, Problem
from raison.rationales.refined import refine_rationale
from raison.rationales.search import Search, search

__all__ = ["Exact"]

BLOCK = 512  # sets asked about together


@search("exact")
@dataclass(frozen=True)
class Exact(Search):
    """The smallest sufficient set, proved by growing size, or the best found and how far the proof came.

    min |S| such that S is enough (P0, Eq. 3 and section 1.4 of its code). A quick search first gives an upper bound;
    then all sets of 0, 1, 2, … units are tried in reading order, so that only sizes below the bound must be searched.
    """

    evaluations: int | None = 20_000

    paper = "Vafa et al. 2021 (P0)"

    def policy(self, problem: Problem) -> Policy:
        return prove_smallest_set(problem)


def prove_smallest_set(problem: Problem) -> Policy:
    """Find a good set, then rule out everything that would cost less."""
    yield from refine_rationale(problem)
    tried = 0
    for size in range(problem.size + 1):
        if problem.settled(size):
            break
        for sets in blocks_of_sets(problem.size, size):
            judged = yield sets
            if len(judged) < len(sets):  # the budget ended here, so nothing is ruled out
                problem.consider(judged, judged.cheapest())
                return
            tried += len(sets)
            problem.progress = min(1.0, tried / count_sets_ahead(problem))

            row = judged.cheapest()
            before = problem.best.units
            if judged.enough[row] and problem.consider(judged, row):
                problem.record_step("swap", judged, row, before)
                if problem.settled(size):
                    problem.proved = True
                    return
        problem.lower_bound = max(problem.lower_bound, size + 1)
    problem.proved = problem.best.enough


def count_sets_ahead(problem: Problem) -> int:
    """How many sets there are to rule out, as far as the budget reaches."""
    count = 0
    for size in range(problem.size + 1):
        if not problem.settled(size):
            count += comb(problem.size, size)
    if problem.budget is not None:
        count = min(count, problem.budget)
    return max(1, count)


def blocks_of_sets(units: int, size: int) -> Iterator[np.ndarray]:
    """All sets of a size in reading order, some at a time."""
    every = combinations(range(units), size)
    while True:
        part = list(islice(every, BLOCK))
        if not part:
            return
        sets = np.zeros((len(part), units), bool)
        for row, chosen in enumerate(part):
            sets[row, list(chosen)] = True
        yield sets
