"""Refined search: grow from a pool of units, remove, exchange. Rationales get a third shorter than greedy ones, at
their price or far below.

How it came about is measured in benchmarks/rationales.py. Three things make it short: candidates are compared by
probability *and* by their lead over the runner-up, which is what sufficiency asks for; units that later ones made
superfluous are removed; and two units are exchanged for one. One thing makes it cheap in long contexts: what a model
needs mostly stands in what it has just read, so growing windows are tried before single units.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from raison.core.parameters import check_integer
from raison.rationales.problem import JudgedSets, Policy, Problem, sets_with_each_turned
from raison.rationales.search import Search, search

__all__ = ["Refined", "refine_rationale"]

WINDOW = 8  # units of the first window; doubled until it is enough
POOL = 24  # units that a search in a window chooses among
CAP = 10  # units to which a set is grown before removing whole blocks is cheaper
PARTS = 4  # blocks at first
LEAST = 6  # units that are missed least: two of them are exchanged for one
SHORTLIST = 12  # units that take their place
ROUNDS = 8


@search("refined")
@dataclass(frozen=True)
class Refined(Search):
    """Grow, remove what can be spared until nothing can, then exchange two units for one, as long as that helps."""

    short: int = 64  # contexts up to so many units are searched whole, longer ones in windows
    exchanges: int = 5  # pairs of units that are tried in each round; 0: remove only

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("short", self.short, 1)
        check_integer("exchanges", self.exchanges, 0)

    def policy(self, problem: Problem) -> Policy:
        return refine_rationale(problem, self.short, self.exchanges)


class Gains:
    """The most that each unit ever added to a set: who may take another's place."""

    def __init__(self, size: int):
        self.best = np.full(size, -np.inf)

    def note(self, judged: JudgedSets, before: np.ndarray, level: float) -> None:
        """Learn from sets that differ from the one before by a unit each; that one climbed to `level`."""
        changed = judged.sets ^ before
        units = changed.argmax(1)
        gain = judged.climb - level
        best_so_far = self.best[units]
        self.best[units] = np.maximum(best_so_far, gain)

    def shortlist(self, chosen: np.ndarray) -> np.ndarray:
        """The most promising units that are not chosen, in reading order."""
        gain = np.where(chosen, -np.inf, self.best)
        best_first = np.argsort(-gain, kind="stable")
        ranked = best_first[:SHORTLIST]
        known = np.isfinite(gain[ranked])
        return np.sort(ranked[known])


def refine_rationale(problem: Problem, short: int = 64, exchanges: int = 5) -> Policy:
    """The whole policy; every phase works on `problem.best` and leaves it better or as it was."""
    gains = Gains(problem.size)
    judged = yield problem.nothing[None]
    problem.record_step("start", judged, 0)
    nothing_is_best = problem.consider(judged, 0)
    if nothing_is_best and problem.settled(1):
        problem.proved = True
        return
    nothing_is_enough = judged.enough[0]
    if not nothing_is_enough:
        problem.lower_bound = max(problem.lower_bound, 1)

    level = float(judged.climb[0])
    pool = np.arange(problem.size)
    if problem.size > short:
        pool = yield from choose_pool_of_units(problem, gains, level)

    yield from grow_from_pool(problem, gains, level, pool)
    yield from remove_blocks(problem)
    yield from remove_single_units(problem)
    for _ in range(ROUNDS):
        before = problem.best
        if before.units.sum() < 3:  # pairs of units are known from growing
            return
        cost = before.cost
        yield from exchange_pairs(problem, gains, exchanges)
        costs_less = problem.best.cost < cost
        if not costs_less:
            return
        yield from remove_single_units(problem)


def choose_pool_of_units(
    problem: Problem, gains: Gains, level: float
) -> Generator[np.ndarray, JudgedSets, np.ndarray]:
    """The units to choose among: the best of the smallest window at the end of the context that is enough."""
    size = problem.size
    width = WINDOW
    units = np.arange(size)
    while width < size:
        in_window = units >= size - width
        judged = yield in_window[None]
        if problem.consider(judged, 0):
            problem.record_step("add", judged, 0)
            break
        width *= 2
    start = max(0, size - width)
    window = units[start:]
    if len(window) <= POOL:
        return window

    judged = yield sets_with_each_turned(problem.nothing, window)
    gains.note(judged, problem.nothing, level)
    row = judged.cheapest()
    if problem.consider(judged, row):
        problem.record_step("add", judged, row)

    best_first = np.argsort(-judged.climb, kind="stable")
    ranked = window[best_first]
    count = POOL
    while count < len(window):
        pool = ranked[:count]
        in_pool = np.isin(units, pool)
        judged = yield in_pool[None]
        if problem.consider(judged, 0):
            problem.record_step("add", judged, 0)
        pool_is_enough = judged.enough[0]
        if pool_is_enough:
            break
        count *= 2
    return np.sort(ranked[:count])


def grow_from_pool(problem: Problem, gains: Gains, level: float, pool: np.ndarray) -> Policy:
    """Add the unit of the pool that helps most; any candidate that is enough ends it."""
    chosen = problem.nothing
    for size in range(1, CAP + 1):
        is_present = chosen[pool]
        absent = pool[~is_present]
        if problem.settled(size) or not len(absent):
            return
        judged = yield sets_with_each_turned(chosen, absent)
        tried_each_unit = len(judged) == problem.size
        none_is_enough = not judged.enough.any()
        if tried_each_unit and none_is_enough and problem.lower_bound == 1:
            problem.lower_bound = 2
        gains.note(judged, chosen, level)

        is_enough = np.isfinite(judged.cost)
        row = judged.steepest()
        if is_enough.any():
            row = judged.cheapest()
        problem.record_step("add", judged, row, chosen)
        problem.consider(judged, row)
        chosen = judged.sets[row]
        level = float(judged.climb[row])


def remove_blocks(problem: Problem) -> Policy:
    """Where growing did not get there: remove ever smaller blocks, as long as the rest costs less."""
    parts = PARTS
    while problem.best.units.sum() > CAP:
        kept = np.flatnonzero(problem.best.units)
        most_parts = len(kept) // 2
        if parts > most_parts:
            return
        blocks = np.array_split(kept, parts)
        for block in blocks:
            before = problem.best.units
            rest = before.copy()
            rest[block] = False
            judged = yield rest[None]
            if problem.consider(judged, 0):
                problem.record_step("remove", judged, 0, before)
        none_was_removed = problem.best.units.sum() == len(kept)
        if none_was_removed:
            parts *= 2


def remove_single_units(problem: Problem) -> Policy:
    """Remove, one at a time, the unit that is missed least, as long as the rest costs less."""
    while problem.best.units.any():
        before = problem.best.units
        units = np.flatnonzero(before)
        judged = yield sets_with_each_turned(before, units)
        row = judged.cheapest()
        if not problem.consider(judged, row):
            return
        problem.record_step("remove", judged, row, before)


def exchange_pairs(problem: Problem, gains: Gains, exchanges: int) -> Policy:
    """Take out the pairs that are missed least, and try the most promising others in the place of each pair."""
    before = problem.best.units
    units = np.flatnonzero(before)
    judged = yield sets_with_each_turned(before, units)  # remembered from shrinking, so free
    least_missed_first = np.argsort(-judged.climb, kind="stable")
    least = units[least_missed_first[:LEAST]]
    in_reading_order = np.sort(least)

    pairs = list(combinations(in_reading_order, 2))
    sets = np.repeat(before[None], len(pairs), axis=0)
    for row, pair in enumerate(pairs):
        sets[row, list(pair)] = False
    judged = yield sets
    row = judged.cheapest()
    if problem.consider(judged, row):
        problem.record_step("remove", judged, row, before)
        return

    others = gains.shortlist(before)
    if not len(others):
        return
    best_first = np.argsort(-judged.climb, kind="stable")
    most_promising = best_first[:exchanges]
    for row in most_promising:
        tried = yield sets_with_each_turned(sets[row], others)
        best = tried.cheapest()
        if problem.consider(tried, best):
            problem.record_step("swap", tried, best, before)
            return
