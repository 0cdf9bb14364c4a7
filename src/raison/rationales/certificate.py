"""Certificates of rationales: what was proved about one, checked anew and apart from the search that found it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raison.core import progress
from raison.core.findings import Certificate
from raison.methods.base import Answer
from raison.models.protocol import Model
from raison.models.runner.score_cache import Memory
from raison.rationales.problem import JudgedSets, Problem, is_own_prediction, sets_with_each_turned
from raison.rationales.sufficient import Argmax

__all__ = ["certify", "check_best_sets"]

CONFIDENT = 0.9  # share of the probability; a rationale that loses more has something left to raise


def check_best_sets(model: Model, problems: Sequence[Problem], removal: str | None) -> None:
    """Evaluate every best set again: full length and masked where the search deleted, and nothing remembered.

    Only sets that are said to be enough, and not the whole context itself, which is what they are compared with.
    """
    unchecked = []
    for problem in problems:
        if problem.best.enough and problem.best.units.all():
            problem.check = problem.full
        elif problem.best.enough:
            unchecked.append(problem)

    questions = [problem.question(problem.best.units[None]) for problem in unchecked]
    with progress.silence():
        answers = model.score(questions, removal=removal_of_independent_check(model, removal))
    for problem, scored in zip(unchecked, answers, strict=True):
        problem.check = scored
        problem.check_tokens += scored.tokens


def removal_of_independent_check(model: Model, removal: str | None) -> str | None:
    """Another way to the same answer, where there is one."""
    deletes = removal in (None, "delete") and model.removals[0] == "delete"
    if deletes and "mask" in model.removals:
        return "mask"
    return removal


def certify(
    model: Model, problems: Sequence[Problem], removal: str | None, memory: Memory
) -> list[Answer]:
    """The answers: what was selected, how much each selected unit matters to the rest, and the certificate."""
    unchecked = [problem for problem in problems if problem.check is None]
    check_best_sets(model, unchecked, removal)

    spared = []
    questions = []
    for problem in problems:
        sets = rationales_without_one_unit(problem)
        spared.append(sets)
        questions.append(problem.question(sets))
    with progress.silence():
        answers = model.score(questions, removal=removal, memory=memory)

    results = []
    for problem, sets, scored in zip(problems, spared, answers, strict=True):
        problem.check_tokens += scored.tokens
        without_one = problem.judge(sets, scored)
        results.append(answer_with_certificate(problem, without_one))
    return results


def rationales_without_one_unit(problem: Problem) -> np.ndarray:
    """[s u] the rationale without each of its units; none where the search ended before it found anything."""
    best = problem.best
    found = problem.improved or problem.status == "complete"
    if not best.enough or not found:
        return np.zeros((0, problem.size), bool)
    return sets_with_each_turned(best.units, np.flatnonzero(best.units))


def answer_with_certificate(problem: Problem, without: JudgedSets) -> Answer:
    """One answer; `without` are the rationales without each of its units, where they were looked at."""
    best = problem.best
    selected = np.flatnonzero(best.units)
    looked = len(without) == len(selected)
    scores = np.zeros(problem.size)
    irreducible = None
    if looked:
        scores[selected] = best.value - without.value
        irreducible = bool(best.enough) and not (without.cost < best.cost).any()

    order = [unit for unit in problem.order if best.units[unit]]
    order += [int(unit) for unit in selected if unit not in problem.order]
    diagnostics: dict[str, object] = {}
    if problem.levels is not None:
        diagnostics["levels"] = problem.levels
    return Answer(
        scores=scores,
        order=np.array(order, dtype=np.int64),
        selected=best.units,
        certificate=certificate_of(problem, irreducible),
        steps=tuple(problem.steps),
        notes=(*problem.notes, *notes_on_empty_rationale(problem)),
        diagnostics=diagnostics,
        cost={"forwards": problem.evaluations, "tokens": problem.search_tokens},
    )


def certificate_of(problem: Problem, irreducible: bool | None) -> Certificate:
    """What was proved about the best set of a problem, as a record."""
    best = problem.best
    size = int(best.units.sum())
    lower_bound = min(problem.lower_bound, size)
    if problem.proved:
        lower_bound = size
    optimal = problem.proved or (bool(irreducible) and problem.settled(lower_bound))

    status = problem.status
    if not best.enough and status == "complete":
        status = "impossible"
    if optimal:  # what more could a larger budget bring?
        status = "complete"

    encoding, target = problem.encoding, problem.target
    context = target.inputs(len(encoding)) & target.scope(len(encoding))
    (keep,) = problem.question(best.units[None]).keep
    kept = keep | target.given(encoding)
    full_value = problem.full.value.sum()
    probability = full_probability = None
    if problem.has_probabilities:
        probability = float(np.exp(best.value))
        full_probability = float(np.exp(full_value))

    return Certificate(
        rule=str(problem.rule.spec()),
        sufficient=bool(best.enough and problem.passes_check),
        size=size,
        irreducible=irreducible,
        optimal=bool(optimal),
        lower_bound=lower_bound,
        kept_tokens=int((kept & context).sum()),
        context_tokens=int(context.sum()),
        is_prediction=problem.is_prediction,
        status=status,
        value=best.value,
        full_value=float(full_value),
        probability=probability,
        full_probability=full_probability,
        evaluations=problem.evaluations,
        search_tokens=problem.search_tokens,
        check_tokens=problem.check_tokens,
    )


def notes_on_empty_rationale(problem: Problem) -> list[str]:
    """A sentence where nothing of the text is needed: why, and what to ask instead."""
    best = problem.best
    if best.units.any() or not best.enough:
        return []
    given = "nothing at all"
    if problem.target.given(problem.encoding).any():
        given = "the tokens that can't be removed"

    keeps_prediction = isinstance(problem.rule, Argmax) and is_own_prediction(problem.full)
    if not keeps_prediction:
        return [f"By the rule {problem.rule.spec()}, {given} would be enough."]
    lost = float(problem.full.value.sum()) - best.value
    if problem.has_probabilities and lost > -np.log(CONFIDENT):
        advice = "To see what raises its confidence, ask for probability(tau=0.9)."
    else:
        advice = "It is as sure of it without the text: scores (raison explain) tell what each part adds."
    return [f"The model predicts this from {given}. {advice}"]
