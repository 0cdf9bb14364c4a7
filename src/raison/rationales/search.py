"""The one loop: every policy says which sets it wants to know about, and the model answers all of them together.

All targets of all texts are asked about in one call per step, finished ones drop out, and one memory serves them
all, so a prefix that two searches need is computed once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from raison.core import progress
from raison.core.registry import searches
from raison.core.spec import whole
from raison.methods.base import Answer, Batch, Method
from raison.models.protocol import Model
from raison.models.runner.score_cache import Memory
from raison.rationales.certificate import certify, check
from raison.rationales.problem import Policy, Problem
from raison.rationales.sufficient import rule_of

__all__ = ["Interrupted", "Search", "drive", "search"]

S = TypeVar("S", bound="type[Search]")
AGAIN = 20  # times that a search may be refuted by the independent check before its answer is given up


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while rationales are looked for; `partial` holds what is finished, and the best that was found so far."""

    def __init__(self, partial: list[Any]):
        super().__init__("interrupted")
        self.partial = partial


def search(name: str) -> Callable[[S], S]:
    """Register a search under the name that users type."""
    return searches.named(name)


@dataclass(frozen=True)
class Search(Method):
    """Parameters of a search for the smallest sufficient set of units."""

    sufficient: Any = None  # a rule: argmax, probability(tau=0.9), top(k=5), drop(nats=1), penalty(weight=0.1)
    evaluations: int | None = None  # how many sets may be asked about; None: as many as it takes

    axis = "unit"
    signed = True
    needs = frozenset({"score"})

    def __post_init__(self) -> None:
        rule = rule_of(self.sufficient)  # a misspelt rule is refused before a model runs
        object.__setattr__(self, "sufficient", None if rule is None else rule.spec())
        if self.evaluations is not None:
            whole("evaluations", self.evaluations, 1)

    @abstractmethod
    def policy(self, problem: Problem) -> Policy:
        """What to ask next, as a generator."""

    def hints(self, model: Model, batch: Batch, problems: Sequence[Problem]) -> None:
        """Give problems what the policy wants to know about the text beforehand."""

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        problems = [self.problem(model, batch, index) for index in range(len(batch))]
        self.hints(model, batch, problems)
        memory = Memory()
        try:
            drive(model, problems, self.policy, batch.removal, memory)
            return certify(model, problems, batch.removal, memory)
        except KeyboardInterrupt:
            found = [index for index, problem in enumerate(problems) if problem.best is not None]
            for problem in (problems[index] for index in found):
                problem.status = problem.status if problem.finished else "interrupted"
            answers = certify(model, [problems[index] for index in found], batch.removal, memory)
            raise Interrupted(list(zip(found, answers, strict=True))) from None

    def problem(self, model: Model, batch: Batch, index: int) -> Problem:
        target = batch.targets[index]
        if model.probable:  # a search climbs log-probabilities, whatever is shown
            target = replace(target, output="log_prob")
        rule = rule_of(self.sufficient)
        tie = model.rounding
        full = batch.whole[index] if batch.whole else None
        said = batch.predicted[index] if batch.predicted and target.kind == "span" else None
        place = batch.encodings[index], target, batch.units[index]
        return Problem(*place, rule, self.evaluations, full=full, tie=tie, predicted=said)


def drive(
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
    unknown = [problem for problem in problems if problem.full is None]
    whole = model.score([p.question(p.everything[None]) for p in unknown], removal=removal, memory=memory)
    for problem, full in zip(unknown, whole, strict=True):
        problem.full = full
        problem.evaluations += full.forwards
        problem.tokens += full.tokens
    for problem in problems:
        problem.open()
        problem.restart()
    waiting = list(problems)
    for _ in range(AGAIN):
        side_by_side(model, waiting, policy, removal, memory)
        check(model, waiting, removal)
        waiting = [
            problem for problem in waiting if problem.best is not None and problem.best.enough and not problem.holds
        ]
        if not waiting:
            return
        for problem in waiting:
            problem.refuted.add(problem.best.chosen.tobytes())  # type: ignore[union-attr]
            problem.restart()
    for problem in waiting:
        problem.notes.append("Nothing smaller stood the check: up to rounding, the model can't decide.")
    check(model, waiting, removal)


def side_by_side(
    model: Model,
    problems: Sequence[Problem],
    policy: Callable[[Problem], Policy],
    removal: str | None,
    memory: Memory,
) -> None:
    """One pass of all policies."""
    running = {index: policy(problem) for index, problem in enumerate(problems)}
    wanted: dict[int, np.ndarray] = {}
    for index in list(running):
        advance(running, wanted, problems, index, None)
    while wanted:
        questions = [problems[index].question(sets) for index, sets in wanted.items()]
        with progress.silence():
            answers = model.score(questions, removal=removal, memory=memory)
        for (index, sets), scored in zip(list(wanted.items()), answers, strict=True):
            problem = problems[index]
            problem.evaluations += scored.forwards
            problem.tokens += scored.tokens
            advance(running, wanted, problems, index, problem.judge(sets, scored))
        report(problems, running)


def advance(running: dict, wanted: dict, problems: Sequence[Problem], index: int, judged: Any) -> None:
    """Hand a policy its answers and take its next sets; a policy that is done or has spent its budget leaves."""
    problem = problems[index]
    try:
        sets = next(running[index]) if judged is None else running[index].send(judged)
        if problem.status == "budget":
            raise StopIteration
        if problem.budget is not None and problem.evaluations + len(sets) > problem.budget:
            problem.status = "budget"  # what is left of it goes to a part of these sets, and then it is over
            sets = sets[: problem.budget - problem.evaluations]
            if not len(sets):
                raise StopIteration
        wanted[index] = sets
    except StopIteration:
        problem.finished = True
        running.pop(index)
        wanted.pop(index, None)


def report(problems: Sequence[Problem], running: Mapping[int, Any]) -> None:
    """How far all searches are, in thousandths of one; those that know how far they are themselves say so."""
    asked = sum(problem.evaluations for problem in problems)
    shares = [problem.share if index in running else 1.0 for index, problem in enumerate(problems)]
    progress.report(int(1000 * sum(shares)), 1000 * len(problems), f"{asked:,} sets tried")
