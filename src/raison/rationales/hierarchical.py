"""From coarse to fine: sufficient passages first, then sentences inside them, then words inside those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raison.core import units as grouping
from raison.core.errors import InputError
from raison.core.records import Units
from raison.core.registry import searches
from raison.methods.base import Batch
from raison.models.protocol import Model
from raison.rationales.problem import Judged, Policy, Problem
from raison.rationales.search import Search, search

__all__ = ["Hierarchical"]

LEVELS = ("passage", "sentence", "word", "token")  # from the largest units to the smallest


@search("hierarchical")
@dataclass(frozen=True)
class Hierarchical(Search):
    """Search passages (or slots) first, then sentences, then words inside what is left: for long contexts.

    Each level is searched by another search, on what the level before has kept; the result is in the units that were
    asked for. A level at which the text has a single unit is skipped.
    """

    search: Any = "refined"  # what searches each level

    @property
    def inner(self) -> Search:
        return self.search if isinstance(self.search, Search) else searches.build(self.search)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.inner, Hierarchical):
            raise InputError("A hierarchical search needs a plain search for its levels, such as refined or greedy.")
        if self.sufficient is None:
            object.__setattr__(self, "sufficient", self.inner.sufficient)

    def hints(self, model: Model, batch: Batch, problems: Sequence[Problem]) -> None:
        self.inner.hints(model, batch, problems)

    def policy(self, problem: Problem) -> Policy:
        return descend(problem, self.inner)


def descend(problem: Problem, inner: Search) -> Policy:
    """Search each level among the units that the level before has kept."""
    if not problem.size:
        return (yield from inner.policy(problem))
    alive = problem.everything
    found = []
    for level in levels_of(problem):
        if not alive.any():
            break
        level_of = Level(problem, level, alive)
        if len(level_of.groups) < 2 and level != problem.units.level:
            continue
        kept = yield from level_of.searched(inner)
        if kept is None:
            break
        found.append({"level": level, "kept": int(kept.sum()), "of": len(level_of.groups)})
        alive = level_of.behind(kept[None])[0]
    problem.facts["levels"] = found


def levels_of(problem: Problem) -> list[str]:
    """From passages (slots, where the prompt has some) down to the units that were asked for."""
    last = problem.units.level
    if last in ("slot", "passage"):
        return [last]
    names = list(LEVELS[: LEVELS.index(last) + 1])
    return ["slot", *names[1:]] if problem.encoding.slots else names


class Level:
    """A search on groups of units, asked about the units behind them."""

    def __init__(self, problem: Problem, level: str, alive: np.ndarray):
        self.problem, self.alive, self.level = problem, alive, level
        self.of = coarse_of(problem, level)  # [u]
        self.groups = np.unique(self.of[alive])

    def behind(self, sets: np.ndarray) -> np.ndarray:
        """[n u] the living units of the groups in each set [n g]."""
        chosen = np.zeros((len(sets), int(self.of.max()) + 1), bool)
        chosen[:, self.groups] = sets
        return chosen[:, self.of] & self.alive

    def searched(self, inner: Search) -> Policy:
        """Run a search on the groups; returns those it kept."""
        problem = self.problem
        part = Problem(problem.encoding, problem.target, self.units(), problem.rule, full=problem.full, tie=problem.tie)
        if problem.hint is not None:  # a group is as good as its best unit
            part.hint = np.array([problem.hint[(self.of == group) & self.alive].max() for group in self.groups])
        every = part.everything[None]
        part.offer(self.seen(part, every, (yield self.behind(every))), 0)
        running = inner.policy(part)
        judged = None
        while True:
            try:
                sets = next(running) if judged is None else running.send(judged)
            except StopIteration:
                break
            part.evaluations += len(sets)
            if inner.evaluations is not None and part.evaluations > inner.evaluations:
                problem.status = "budget"
                break
            answered = yield self.behind(sets)
            if answered.enough.any():
                problem.offer(answered, answered.cheapest())
            judged = self.seen(part, sets[: len(answered)], answered)
        problem.lower_bound = max(problem.lower_bound, min(1, part.lower_bound))
        problem.steps += [self.translated(step) for step in part.steps]
        problem.order = [int(u) for g in part.order for u in np.flatnonzero(self.of == self.groups[g]) if self.alive[u]]
        return part.best.chosen if part.best is not None and part.best.enough else None

    def seen(self, part: Problem, sets: np.ndarray, judged: Judged) -> Judged:
        """What the answers mean for the groups: a set costs as many groups as it has."""
        cost = part.rule.cost(sets.sum(1), judged.value, judged.enough)  # type: ignore[union-attr]
        return Judged(sets, judged.value, judged.climb, judged.enough, cost, judged.tie)

    def units(self) -> Units:
        """The groups as units of their own, over what is alive."""
        place = np.full(int(self.of.max()) + 2, -1)
        place[self.groups] = np.arange(len(self.groups))
        fine = self.problem.units
        living = (fine.of >= 0) & np.append(self.alive, False)[fine.of]
        of = np.where(living, place[np.append(self.of, -1)[fine.of]], -1)
        first = [int(np.flatnonzero((self.of == group) & self.alive)[0]) for group in self.groups]
        return Units(self.level, of, tuple(fine.names[u] for u in first), tuple(fine.spans[u] for u in first))

    def translated(self, step: dict[str, Any]) -> dict[str, Any]:
        """A step on groups in terms of units."""

        def units(groups: list[int]) -> list[int]:
            sets = np.zeros((1, len(self.groups)), bool)
            sets[0, groups] = True
            return [int(u) for u in np.flatnonzero(self.behind(sets)[0])]

        changed = {key: units(step[key]) for key in ("added", "removed", "chosen")}
        candidates = [[units([group])[0], value] for group, value in step["candidates"]]
        return {**step, **changed, "candidates": candidates, "size": len(changed["chosen"]), "level": self.level}


def coarse_of(problem: Problem, level: str) -> np.ndarray:
    """[u] the group of each unit; groups that share a unit become one."""
    fine = problem.units
    if level == fine.level:
        return np.arange(len(fine))
    of = grouping.group(problem.encoding, level, fine.of >= 0).of
    joined = np.arange(int(of.max()) + 1)
    touched = [np.unique(of[fine.of == unit]) for unit in range(len(fine))]
    for groups in touched:
        joined[np.isin(joined, joined[groups])] = joined[groups].min()
    return np.array([joined[groups[0]] for groups in touched])
