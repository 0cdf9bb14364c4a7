"""What can be said for sure about a rationale: checked anew, apart from the search that found it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from raison.core import progress
from raison.methods.base import Answer
from raison.models.protocol import Model
from raison.models.runner.score_cache import Memory
from raison.rationales.problem import Judged, Problem, with_each
from raison.rationales.sufficient import Argmax

__all__ = ["certify", "check"]


def check(model: Model, problems: Sequence[Problem], removal: str | None) -> None:
    """Evaluate every best set again: full length and masked where the search deleted, and nothing remembered.

    Only sets that are said to be enough, and not the whole context itself, which is what they are compared with.
    """
    found = [problem for problem in problems if problem.best is not None and problem.best.enough]
    for problem in found:
        if problem.best.chosen.all():  # type: ignore[union-attr]
            problem.check = problem.full
    found = [problem for problem in found if not problem.best.chosen.all()]  # type: ignore[union-attr]
    questions = [problem.question(problem.best.chosen[None]) for problem in found]  # type: ignore[union-attr]
    deletes = removal in (None, "delete") and model.removals[0] == "delete"
    other = "mask" if deletes and "mask" in model.removals else removal
    with progress.silence():
        answers = model.score(questions, removal=other)
    for problem, scored in zip(found, answers, strict=True):
        problem.check = scored
        problem.check_tokens += scored.tokens


def certify(model: Model, problems: Sequence[Problem], removal: str | None, memory: Memory) -> list[Answer]:
    """The answers: what was selected, how much each selected unit matters to the rest, and the certificate."""
    check(model, [problem for problem in problems if problem.check is None], removal)
    spared = [spare(problem) for problem in problems]
    with progress.silence():
        answers = model.score(
            [problem.question(sets) for problem, sets in zip(problems, spared, strict=True)],
            removal=removal,
            memory=memory,
        )
    results = []
    for problem, sets, scored in zip(problems, spared, answers, strict=True):
        problem.check_tokens += scored.tokens
        results.append(certified(problem, problem.judge(sets, scored)))
    return results


def spare(problem: Problem) -> np.ndarray:
    """[s u] the rationale without each of its units; none where the search ended before it found anything."""
    best = problem.best
    assert best is not None
    if not best.enough or not (problem.improved or problem.status == "complete"):
        return np.zeros((0, problem.size), bool)
    return with_each(best.chosen, np.flatnonzero(best.chosen))


def certified(problem: Problem, without: Judged) -> Answer:
    """One answer; `without` are the rationales without each of its units, where they were looked at."""
    best = problem.best
    assert best is not None and problem.full is not None and problem.rule is not None
    chosen = np.flatnonzero(best.chosen)
    looked = len(without) == len(chosen)
    scores = np.zeros(problem.size)
    if looked:
        scores[chosen] = best.value - without.value
    status = problem.status
    if not best.enough and status == "complete":
        status = "impossible"
    irreducible = (bool(best.enough) and not (without.cost < best.cost).any()) if looked else None
    small = int(best.chosen.sum())
    bound = small if problem.proved else min(problem.lower_bound, small)
    optimal = bool(problem.proved or (irreducible and problem.settled(bound)))
    status = "complete" if optimal else status  # what more could a larger budget bring?
    scope = problem.target.inputs(len(problem.encoding)) & problem.target.scope(len(problem.encoding))
    kept = problem.question(best.chosen[None]).keep[0] | problem.target.given(problem.encoding)
    certificate: dict[str, Any] = {
        "rule": str(problem.rule.spec()),
        "sufficient": bool(best.enough and problem.holds),
        "irreducible": irreducible,
        "optimal": optimal,
        "lower_bound": bound,
        "size": small,
        "length": int((kept & scope).sum()),
        "context": int(scope.sum()),
        "own": problem.own if problem.predicted is None else problem.predicted,
        "status": status,
        "value": best.value,
        "full_value": float(problem.full.value.sum()),
        "evaluations": problem.evaluations,
        "tokens": problem.tokens,
        "check_tokens": problem.check_tokens,
    }
    if problem.probable:
        certificate["probability"] = float(np.exp(best.value))
        certificate["full_probability"] = float(np.exp(problem.full.value.sum()))
    diagnostics: dict[str, Any] = {"certificate": certificate, "steps": problem.steps, **problem.facts}
    if notes := notes_on(problem, small):
        diagnostics["notes"] = notes
    rest = [int(unit) for unit in chosen if unit not in problem.order]
    order = [unit for unit in problem.order if best.chosen[unit]] + rest
    cost = {"forwards": problem.evaluations, "tokens": problem.tokens}
    return Answer(scores, np.array(order, dtype=np.int64), best.chosen, diagnostics=diagnostics, cost=cost)


def notes_on(problem: Problem, size: int) -> list[str]:
    """Sentences that a reader needs before believing the picture."""
    notes = list(problem.notes)
    if size == 0 and problem.best is not None and problem.best.enough:
        given = "the tokens that can't be removed" if problem.target.given(problem.encoding).any() else "nothing at all"
        if isinstance(problem.rule, Argmax) and problem.own:
            assert problem.full is not None
            lost = float(problem.full.value.sum()) - problem.best.value
            more = (
                "To see what raises its confidence, ask for probability(tau=0.9)."
                if problem.probable and lost > -np.log(0.9)
                else "It is as sure of it without the text: scores (raison explain) tell what each part adds."
            )
            notes.append(f"The model predicts this from {given}. {more}")
        else:
            notes.append(f"By the rule {problem.rule.spec()}, {given} would be enough.")  # type: ignore[union-attr]
    return notes
