"""The one loop: every policy says which sets it wants to know about, and the model answers all of them together.

All targets of all texts are asked about in one call per step, finished ones drop out, and one memory serves them
all, so a prefix that two searches need is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from raison.core import progress
from raison.models.protocol import Model
from raison.models.runner.score_cache import Memory
from raison.rationales.certificate import check_best_sets
from raison.rationales.problem import JudgedSets, Policy, Problem

__all__ = ["solve"]

# times that a search may be refuted by the independent check before its answer is given up
REFUTATIONS = 20


def solve(
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
        waiting = [
            problem for problem in waiting if problem.best.enough and not problem.passes_check
        ]
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


class RunningSearch:
    """A policy at work on its problem: the sets that it asks about now, or None when it is done."""

    def __init__(self, problem: Problem, policy: Policy):
        self.problem = problem
        self.policy = policy
        self.sets: np.ndarray | None = None
        self.advance(None)

    def advance(self, judged: JudgedSets | None) -> None:
        """Hand the policy its answers and take its next sets; a policy that has spent its budget leaves."""
        try:
            sets = next(self.policy) if judged is None else self.policy.send(judged)
        except StopIteration:
            self.finish()
            return

        problem = self.problem
        if problem.status == "budget":
            self.finish()
            return
        if problem.budget is not None and problem.evaluations + len(sets) > problem.budget:
            # what is left of it goes to a part of these sets, and then it is over
            problem.status = "budget"
            sets = sets[: problem.budget - problem.evaluations]
            if not len(sets):
                self.finish()
                return
        self.sets = sets

    def finish(self) -> None:
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
        report_progress(every)


def report_progress(every: Sequence[RunningSearch]) -> None:
    """How far all searches are, in thousandths of one; those that know how far they are themselves say so."""
    asked = 0
    done = 0.0
    for running in every:
        asked += running.problem.evaluations
        done += 1.0 if running.sets is None else running.problem.progress
    progress.report(int(1000 * done), 1000 * len(every), f"{asked:,} sets tried")
