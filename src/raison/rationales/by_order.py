"""Search by order: growing a rationale in the order of an attribution method, the baselines of P0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.errors import InputError
from raison.core.registry import methods
from raison.core.spec import Spec
from raison.methods.base import Batch, Method, check_needs_of_method
from raison.models.protocol import Model
from raison.rationales.problem import Policy, Problem
from raison.rationales.search import Search, search

__all__ = ["ByOrder", "unit_scores_and_tokens"]

BLOCK = 8  # prefixes asked about together


@search("by_order")
@dataclass(frozen=True)
class ByOrder(Search):
    """Add units in the order of an attribution method until what is there is enough (P0, section 8)."""

    method: str | Spec | Method = "leave_one_out"  # any method of `raison ls methods`

    paper = "Vafa et al. 2021 (P0)"

    @property
    def built(self) -> Method:
        """The method that gives the order."""
        if isinstance(self.method, Method):
            return self.method
        method: Method = methods.build(self.method)
        return method

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.built, Method):
            raise InputError("by_order needs an attribution method: see `raison ls methods`.")

    def add_hints(self, model: Model, batch: Batch, problems: Sequence[Problem]) -> None:
        check_needs_of_method(self.built, model)
        scores_and_tokens = unit_scores_and_tokens(self.built, model, batch)
        for problem, (scores, tokens) in zip(problems, scores_and_tokens, strict=True):
            problem.hint = scores
            problem.search_tokens += tokens

    def policy(self, problem: Problem) -> Policy:
        return follow_hinted_order(problem)


def follow_hinted_order(problem: Problem) -> Policy:
    """Ask about growing prefixes of the hinted order, a block at a time, until one is enough."""
    hint = problem.hint
    if hint is None:
        hint = np.zeros(problem.size)
    order = np.argsort(-hint, kind="stable")
    before = problem.nothing
    for start in range(0, problem.size + 1, BLOCK):
        end = min(start + BLOCK, problem.size + 1)
        sizes = range(start, end)
        sets = np.zeros((len(sizes), problem.size), bool)
        for row, size in enumerate(sizes):
            sets[row, order[:size]] = True
        judged = yield sets
        for row, size in enumerate(sizes[: len(judged)]):
            if problem.settled(size):
                return
            action = "start"
            if size:
                action = "add"
            problem.record_step(action, judged, row, before)
            problem.consider(judged, row)
            before = sets[row]


def forwards_of_method(method: Method) -> int:
    """Forward passes of a text that a method costs which does not say so itself."""
    if "gradients" in method.needs:
        return 3
    if method.needs:
        return 1
    return 0


def unit_scores_and_tokens(
    method: Method, model: Model, batch: Batch
) -> list[tuple[np.ndarray, int]]:
    """Scores on units and the token-forwards they cost (a backward pass counts as two forward passes)."""
    found = []
    for index, answer in enumerate(method(model, batch)):
        size = len(batch.encodings[index])
        estimate = forwards_of_method(method) * size
        tokens = int(answer.cost.get("tokens", estimate))
        scores = answer.scores
        if method.axis == "token":
            scores = method.scores_of_units(scores, batch.units[index])
        found.append((scores, tokens))
    return found
