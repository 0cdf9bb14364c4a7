"""Hierarchical search by levels of units: sufficient passages first, then sentences inside them, then words inside
those.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.core.errors import InputError
from raison.core.findings import SearchStep
from raison.core.records import Units
from raison.core.registry import searches
from raison.core.spec import Spec
from raison.core.units import group_tokens
from raison.methods.base import Batch
from raison.models.protocol import Model
from raison.rationales.problem import JudgedSets, Policy, Problem, best_set_of, unit_indices
from raison.rationales.search import Search, next_sets, search

__all__ = ["Hierarchical"]

LEVELS = ("passage", "sentence", "word", "token")  # from the largest units to the smallest


@search("hierarchical")
@dataclass(frozen=True)
class Hierarchical(Search):
    """Search passages (or slots) first, then sentences, then words inside what is left: for long contexts.

    Each level is searched by another search, on what the level before has kept; the result is in the units that were
    asked for. A level at which the text has a single unit is skipped.
    """

    search: str | Spec | Search = "refined"  # what searches each level

    @property
    def inner(self) -> Search:
        """The search of each level."""
        if isinstance(self.search, Search):
            return self.search
        inner: Search = searches.build(self.search)
        return inner

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.inner, Hierarchical):
            raise InputError(
                "A hierarchical search needs a plain search for its levels, such as refined or greedy."
            )
        if self.sufficient is None:
            object.__setattr__(self, "sufficient", self.inner.sufficient)

    def add_hints(self, model: Model, batch: Batch, problems: Sequence[Problem]) -> None:
        self.inner.add_hints(model, batch, problems)

    def policy(self, problem: Problem) -> Policy:
        return search_each_level(problem, self.inner)


def search_each_level(problem: Problem, inner: Search) -> Policy:
    """Search each level among the units that the level before has kept."""
    if not problem.size:
        yield from inner.policy(problem)
        return

    alive = problem.everything
    problem.levels = []
    for name in unit_levels_of_problem(problem):
        if not alive.any():
            break
        level = LevelSearch(problem, name, alive)
        group_count = len(level.groups)
        is_last = name == problem.units.level
        if group_count < 2 and not is_last:
            continue
        kept = yield from level.run(inner)
        if kept is None:
            break
        kept_count = int(kept.sum())
        problem.levels.append({"level": name, "kept": kept_count, "of": group_count})
        (alive,) = level.units_behind(kept[None])


def unit_levels_of_problem(problem: Problem) -> list[str]:
    """From passages (slots, where the prompt has some) down to the units that were asked for."""
    last = problem.units.level
    if last in ("slot", "passage"):
        return [last]
    end = LEVELS.index(last) + 1
    names = list(LEVELS[:end])
    if problem.encoding.slots:
        names[0] = "slot"
    return names


class LevelSearch:
    """A search on groups of units, asked about the units behind them."""

    def __init__(self, problem: Problem, name: str, alive: np.ndarray):
        self.problem = problem
        self.name = name
        self.alive = alive  # [u] what the level before has kept
        self.group_of = group_of_each_unit(problem, name)  # [u]
        living_groups = self.group_of[alive]
        self.groups = np.unique(living_groups)

    def units_behind(self, sets: np.ndarray) -> np.ndarray:
        """[n u] the living units of the groups in each set [n g]."""
        count = int(self.group_of.max()) + 1
        selected = np.zeros((len(sets), count), bool)
        selected[:, self.groups] = sets
        units = selected[:, self.group_of]
        living: np.ndarray = units & self.alive
        return living

    def run(self, inner: Search) -> Generator[np.ndarray, JudgedSets, np.ndarray | None]:
        """Run a search on the groups; returns those it kept, or None where nothing was enough."""
        problem = self.problem
        part = Problem(
            encoding=problem.encoding,
            target=problem.target,
            units=self.groups_as_units(),
            full=problem.full,
            rule=problem.rule,
            tie=problem.tie,
            hint=self.best_hints(),
        )
        every = part.everything[None]
        judged = yield self.units_behind(every)
        judged_groups = self.judged_as_groups(part, every, judged)
        part.best = best_set_of(judged_groups, 0)

        yield from self.follow(inner, part)
        at_least_one = min(1, part.lower_bound)
        problem.lower_bound = max(problem.lower_bound, at_least_one)
        for step in part.steps:
            step_in_units = self.step_in_units(step)
            problem.steps.append(step_in_units)
        problem.order = self.order_in_units(part.order)
        if not part.best.enough:
            return None
        return part.best.units

    def follow(self, inner: Search, part: Problem) -> Policy:
        """Hand the sets of the inner policy on as sets of units, and the answers back as answers about groups."""
        problem = self.problem
        policy = inner.policy(part)
        budget = inner.evaluations
        judged = None
        while True:
            sets = next_sets(policy, judged)
            if sets is None:
                return
            part.evaluations += len(sets)
            if budget is not None and part.evaluations > budget:
                problem.status = "budget"
                return

            answered = yield self.units_behind(sets)
            if answered.enough.any():
                cheapest = answered.cheapest()
                problem.consider(answered, cheapest)
            answered_sets = sets[: len(answered)]
            judged = self.judged_as_groups(part, answered_sets, answered)

    def best_hints(self) -> np.ndarray | None:
        """[g] a group is as good as its best unit."""
        hint = self.problem.hint
        if hint is None:
            return None
        best = []
        for group in self.groups:
            in_group = self.group_of == group
            living = in_group & self.alive
            hints = hint[living]
            best.append(hints.max())
        return np.array(best)

    def judged_as_groups(self, part: Problem, sets: np.ndarray, judged: JudgedSets) -> JudgedSets:
        """What the answers mean for the groups: a set costs as many groups as it has."""
        sizes = sets.sum(1)
        cost = part.rule.cost(sizes, judged.value, judged.enough)
        return JudgedSets(sets, judged.value, judged.climb, judged.enough, cost, judged.tie)

    def groups_as_units(self) -> Units:
        """The groups as units of their own, over what is alive."""
        fine = self.problem.units
        # the last entry stands for tokens of no unit, whose number is -1
        alive = np.append(self.alive, False)
        group_of = np.append(self.group_of, -1)
        last_group = int(self.group_of.max())
        place = np.full(last_group + 2, -1)
        place[self.groups] = np.arange(len(self.groups))
        in_a_unit = fine.of >= 0
        living = in_a_unit & alive[fine.of]
        group_of_token = group_of[fine.of]
        place_of_token = np.where(living, place[group_of_token], -1)

        names = []
        spans = []
        for group in self.groups:
            in_group = self.group_of == group
            members = np.flatnonzero(in_group & self.alive)
            first = int(members[0])
            names.append(fine.names[first])
            spans.append(fine.spans[first])
        return Units(self.name, place_of_token, tuple(names), tuple(spans))

    def units_of_groups(self, groups: Sequence[int]) -> list[int]:
        """The living units of some groups."""
        count = len(self.groups)
        sets = np.zeros((1, count), bool)
        sets[0, list(groups)] = True
        (units,) = self.units_behind(sets)
        return unit_indices(units)

    def order_in_units(self, order: Sequence[int]) -> list[int]:
        """The units of groups in the order in which the groups were chosen."""
        units: list[int] = []
        for group in order:
            units += self.units_of_groups([group])
        return units

    def step_in_units(self, step: SearchStep) -> SearchStep:
        """A step of the search among groups as one among units."""
        added = self.units_of_groups(step.added)
        removed = self.units_of_groups(step.removed)
        units = self.units_of_groups(step.units)
        candidates = []
        for group, value in step.candidates:
            first, *_ = self.units_of_groups([group])
            candidate = (first, value)
            candidates.append(candidate)
        return replace(
            step,
            level=self.name,
            added=tuple(added),
            removed=tuple(removed),
            units=tuple(units),
            size=len(units),
            candidates=tuple(candidates),
        )


def group_of_each_unit(problem: Problem, level: str) -> np.ndarray:
    """[u] the group of each unit; groups that share a unit become one."""
    fine = problem.units
    if level == fine.level:
        return np.arange(len(fine))
    in_a_unit = fine.of >= 0
    coarse = group_tokens(problem.encoding, level, in_a_unit)
    touched = []
    for unit in range(len(fine)):
        in_unit = fine.of == unit
        groups_of_unit = np.unique(coarse.of[in_unit])
        touched.append(groups_of_unit)

    group_count = int(coarse.of.max()) + 1
    merged = np.arange(group_count)
    for groups in touched:
        names = merged[groups]
        has_one_of_these = np.isin(merged, names)
        merged[has_one_of_these] = names.min()
    first_groups = [groups[0] for groups in touched]
    return merged[first_groups]
