"""Search, the base class of searches, and the one loop that solves problems side by side: it asks the model about
the sets of all together.

Every policy says which sets it wants to know about, and the model answers all of them in one call per step. Finished
searches drop out, and one memory serves them all, so a prefix that two searches need is computed once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from raison.core import progress
from raison.core.parameters import check_integer
from raison.core.records import Target
from raison.core.registry import searches
from raison.core.spec import Spec
from raison.methods.base import Answer, Batch, Method
from raison.models.protocol import Model, Question, Scored
from raison.models.runner.score_cache import Memory
from raison.rationales.certificate import certify, check_best_sets
from raison.rationales.problem import (
    JudgedSets,
    Policy,
    Problem,
    check_rule_fits_target,
    default_rule,
    is_own_prediction,
)
from raison.rationales.sufficient import rule_from_spec

__all__ = ["Interrupted", "Search", "next_sets", "search"]

S = TypeVar("S", bound="type[Search]")

# times that a search may be refuted by the independent check before its answer is given up
REFUTATIONS = 20


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while rationales are looked for; `partial` holds what is finished, and the best that was found so far."""

    def __init__(self, partial: list[Any]):  # answers with their numbers, or explanations
        super().__init__("interrupted")
        self.partial = partial


def search(name: str) -> Callable[[S], S]:
    """Register a search under the name that users type."""
    return searches.named(name)


@dataclass(frozen=True)
class Search(Method):
    """Parameters of a search for the smallest sufficient set of units."""

    # a rule: argmax, probability(tau=0.9), top(k=5), drop(nats=1), penalty(weight=0.1); None: what suits the target
    sufficient: str | Spec | None = None
    evaluations: int | None = None  # how many sets may be asked about; None: as many as it takes

    axis = "unit"
    signed = True
    needs = frozenset({"score"})

    def __post_init__(self) -> None:
        rule = rule_from_spec(self.sufficient)  # a misspelt rule is refused before a model runs
        if rule is not None:
            object.__setattr__(self, "sufficient", rule.spec())
        if self.evaluations is not None:
            check_integer("evaluations", self.evaluations, 1)

    @abstractmethod
    def policy(self, problem: Problem) -> Policy:
        """What to ask next, as a generator."""

    def add_hints(self, model: Model, batch: Batch, problems: Sequence[Problem]) -> None:
        """Give problems what the policy wants to know about the text beforehand."""

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        memory = Memory()
        problems: list[Problem] = []
        try:
            problems = self.problems_of_batch(model, batch, memory)
            self.add_hints(model, batch, problems)
            solve_problems(model, problems, self.policy, batch.removal, memory)
            return certify(model, problems, batch.removal, memory)
        except KeyboardInterrupt:
            for problem in problems:
                if not problem.finished:
                    problem.status = "interrupted"
            answers = certify(model, problems, batch.removal, memory)
            raise Interrupted(list(enumerate(answers))) from None

    def problems_of_batch(self, model: Model, batch: Batch, memory: Memory) -> list[Problem]:
        """One problem for each target; the whole context is asked about where that is not known yet."""
        targets = list(batch.targets)
        if model.probable:  # a search climbs log-probabilities, whatever is shown
            targets = [replace(target, output="log_prob") for target in targets]
        known = list(batch.whole) or [None] * len(batch)

        unknown = []
        questions = []
        for index, answer in enumerate(known):
            if answer is None:
                units = batch.units[index]
                keep_all = units.keep(np.ones((1, len(units)), bool))
                unknown.append(index)
                questions.append(Question(batch.encodings[index], targets[index], keep_all))
        answers = model.score(questions, removal=batch.removal, memory=memory)
        asked = dict(zip(unknown, answers, strict=True))

        problems = []
        for index, target in enumerate(targets):
            full = known[index]
            if full is not None:
                problem = self.problem_of_target(model, batch, index, target, full)
            else:
                full = asked[index]
                problem = self.problem_of_target(model, batch, index, target, full)
                problem.evaluations += full.forwards
                problem.search_tokens += full.tokens
            problems.append(problem)
        return problems

    def problem_of_target(
        self, model: Model, batch: Batch, index: int, target: Target, full: Scored
    ) -> Problem:
        """The problem of one target; `full` is the answer for the whole context."""
        predicted = None
        if batch.predicted and target.kind == "span":
            predicted = batch.predicted[index]
        is_prediction = predicted
        if is_prediction is None:
            is_prediction = is_own_prediction(full)

        notes: list[str] = []
        rule = rule_from_spec(self.sufficient)
        if rule is None:
            rule, notes = default_rule(target, full, predicted=predicted)
        else:
            check_rule_fits_target(rule, target)

        return Problem(
            encoding=batch.encodings[index],
            target=target,
            units=batch.units[index],
            full=full,
            rule=rule,
            tie=model.rounding,
            budget=self.evaluations,
            is_prediction=is_prediction,
            notes=notes,
        )


def solve_problems(
    model: Model,
    problems: Sequence[Problem],
    policy: Callable[[Problem], Policy],
    removal: str | None,
    memory: Memory,
) -> None:
    """Run the policies of all problems side by side until each has its answer, checked independently.

    The check may contradict the search where two outcomes are as likely as each other up to rounding; then the set
    counts as not enough and the search goes on from its memory, which costs nothing.
    """
    waiting = list(problems)
    for _ in range(REFUTATIONS):
        run_side_by_side(model, waiting, policy, removal, memory)
        check_best_sets(model, waiting, removal)
        waiting = [problem for problem in waiting if is_refuted_by_model(problem)]
        if not waiting:
            return
        for problem in waiting:
            problem.refuted.add(problem.best.units.tobytes())
            problem.restart()

    for problem in waiting:
        problem.notes.append(
            "Nothing smaller stood the check: up to rounding, the model can't decide."
        )
    check_best_sets(model, waiting, removal)


def is_refuted_by_model(problem: Problem) -> bool:
    """Whether the check contradicts a set that the search takes for enough."""
    return problem.best.enough and not problem.passes_check


def next_sets(policy: Policy, judged: JudgedSets | None) -> np.ndarray | None:
    """What a policy asks about when it is told the answers to its last sets (None at its start); None at its end."""
    try:
        if judged is None:
            return next(policy)
        return policy.send(judged)
    except StopIteration:
        return None


class RunningSearch:
    """A policy at work on its problem: the sets that it asks about now, or None when it is done."""

    def __init__(self, problem: Problem, policy: Policy):
        self.problem = problem
        self.policy = policy
        self.sets: np.ndarray | None = None
        self.advance(None)

    def advance(self, judged: JudgedSets | None) -> None:
        """Hand the policy its answers and take its next sets; a policy that has spent its budget leaves."""
        problem = self.problem
        sets = next_sets(self.policy, judged)
        if sets is None or problem.status == "budget":
            self.finish()
            return
        if problem.budget is not None and problem.evaluations + len(sets) > problem.budget:
            # what is left of it goes to a part of these sets, and then it is over
            problem.status = "budget"
            left = problem.budget - problem.evaluations
            sets = sets[:left]
            if not len(sets):
                self.finish()
                return
        self.sets = sets

    def finish(self) -> None:
        """Nothing more is asked."""
        self.problem.finished = True
        self.sets = None


def run_side_by_side(
    model: Model,
    problems: Sequence[Problem],
    policy: Callable[[Problem], Policy],
    removal: str | None,
    memory: Memory,
) -> None:
    """One pass of all policies."""
    every = [RunningSearch(problem, policy(problem)) for problem in problems]
    while True:
        questions, asking = [], []
        for running in every:
            if running.sets is not None:
                questions.append(running.problem.question(running.sets))
                asking.append((running, running.sets))
        if not asking:
            return

        with progress.silence():
            answers = model.score(questions, removal=removal, memory=memory)
        for (running, sets), scored in zip(asking, answers, strict=True):
            problem = running.problem
            problem.evaluations += scored.forwards
            problem.search_tokens += scored.tokens
            running.advance(problem.judge(sets, scored))
        report_search_progress(every)


def report_search_progress(every: Sequence[RunningSearch]) -> None:
    """How far all searches are, in thousandths of one; those that know how far they are themselves say so."""
    asked = 0
    done = 0.0
    for running in every:
        asked += running.problem.evaluations
        if running.sets is None:
            done += 1.0
        else:
            done += running.problem.progress
    progress.report(int(1000 * done), 1000 * len(every), f"{asked:,} sets tried")
