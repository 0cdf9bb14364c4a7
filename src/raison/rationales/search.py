"""What a search is: parameters, a policy, and one loop that asks the model for all texts and targets together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from raison.core.parameters import check_integer
from raison.core.records import Target
from raison.core.registry import searches
from raison.core.spec import Spec
from raison.methods.base import Answer, Batch, Method
from raison.models.protocol import Model, Question, Scored
from raison.models.runner.score_cache import Memory
from raison.rationales.certificate import certify
from raison.rationales.loop import solve
from raison.rationales.problem import Policy, Problem, check_rule, is_own_prediction, rule_for
from raison.rationales.sufficient import rule_of

__all__ = ["Interrupted", "Search", "search"]

S = TypeVar("S", bound="type[Search]")


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
        rule = rule_of(self.sufficient)  # a misspelt rule is refused before a model runs
        object.__setattr__(self, "sufficient", None if rule is None else rule.spec())
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
            problems = self.problems(model, batch, memory)
            self.add_hints(model, batch, problems)
            solve(model, problems, self.policy, batch.removal, memory)
            return certify(model, problems, batch.removal, memory)
        except KeyboardInterrupt:
            for problem in problems:
                if not problem.finished:
                    problem.status = "interrupted"
            answers = certify(model, problems, batch.removal, memory)
            raise Interrupted(list(enumerate(answers))) from None

    def problems(self, model: Model, batch: Batch, memory: Memory) -> list[Problem]:
        """One problem for each target; the whole context is asked about where that is not known yet."""
        targets = list(batch.targets)
        if model.probable:  # a search climbs log-probabilities, whatever is shown
            targets = [replace(target, output="log_prob") for target in targets]
        answers = list(batch.whole) or [None] * len(batch)

        unknown = [index for index, answer in enumerate(answers) if answer is None]
        questions = []
        for index in unknown:
            keep = batch.units[index].keep(np.ones((1, len(batch.units[index])), bool))
            questions.append(Question(batch.encodings[index], targets[index], keep))
        asked = dict(
            zip(unknown, model.score(questions, removal=batch.removal, memory=memory), strict=True)
        )

        problems = []
        for index, target in enumerate(targets):
            known = answers[index]
            problem = self.problem(
                model, batch, index, target, asked[index] if known is None else known
            )
            if index in asked:
                problem.evaluations += asked[index].forwards
                problem.search_tokens += asked[index].tokens
            problems.append(problem)
        return problems

    def problem(
        self, model: Model, batch: Batch, index: int, target: Target, full: Scored
    ) -> Problem:
        predicted = None
        if batch.predicted and target.kind == "span":
            predicted = batch.predicted[index]
        rule, notes = rule_of(self.sufficient), list[str]()
        if rule is None:
            rule, notes = rule_for(target, full, predicted=predicted)
        else:
            check_rule(rule, target)

        return Problem(
            encoding=batch.encodings[index],
            target=target,
            units=batch.units[index],
            full=full,
            rule=rule,
            tie=model.rounding,
            budget=self.evaluations,
            is_prediction=is_own_prediction(full) if predicted is None else predicted,
            notes=notes,
        )
