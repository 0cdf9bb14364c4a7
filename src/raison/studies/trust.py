"""Can this one explanation be trusted? Its order of units against chance and against leave-one-out, in plain words.

A corpus is judged by `evaluate`; one text is judged here by the same metrics, with many random orders of its units in
the place of many texts: how often does chance do as well?
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from raison import progress
from raison.api import once_more
from raison.errors import InputError
from raison.methods.base import Method
from raison.metrics.asking import measure
from raison.metrics.base import Subject
from raison.metrics.sanity import spearman
from raison.models.base import Model
from raison.record import Record, plain
from raison.registry import methods, metrics, searches
from raison.spec import Spec
from raison.types import Explanation

__all__ = ["Trust", "trust"]

METRICS = ("deletion", "insertion", "comprehensiveness", "sufficiency")
CHANCES = 40  # random orders
SEEDS = 5
NEAR, STEADY = 0.01, 0.9
DRAWS_NOTHING = ("greedy", "exact", "refined")  # searches in which no chance is involved
LIKELY = 0.05  # chance does as well in fewer cases: the order says something


@dataclass(frozen=True, eq=False)
class Trust(Record):
    """What was measured about one explanation, and what that means."""

    sentences: tuple[str, ...]
    numbers: dict[str, dict[str, float]] = field(default_factory=dict)  # metric -> this, leave_one_out, random, chance
    curves: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # and random_low, random_high
    stability: float | None = None  # smallest correlation of ranks between two seeds; None: no chance is involved

    def validate(self) -> None:
        for name in ("numbers", "curves"):
            object.__setattr__(self, name, plain(getattr(self, name)))


def trust(model: Model, explanation: Explanation, seed: int = 0, removal: str | None = None) -> Trust:
    """Measure one explanation of this model; `removal` says what absence means (None: as for the explanation)."""
    if len(explanation.units) < 2:
        raise InputError("The text has one unit, so there is nothing to put in order: give a longer text.")
    method = method_of(explanation)
    removal = removal or explanation.removal or model.removals[0]
    reference = explained_by("leave_one_out", model, replace(explanation, removal=removal))
    rng = np.random.default_rng([seed, int(explanation.encoding.content()[:12], 16)])
    randoms = [ordered(explanation, rng.permutation(len(explanation.units))) for _ in range(CHANCES)]
    subjects = [Subject(each, model=model, removal=removal) for each in (explanation, reference, *randoms)]
    built = [metrics.build(name) for name in METRICS]
    told = measure(model, subjects, built)
    found = [{key: value for part in row for key, value in part.items()} for row in told]
    numbers, curves = {}, {}
    for metric in built:
        key, better = metric.keys[0], metric.higher
        values = np.array([float(row[key]) for row in found])
        ahead = values[2:] >= values[0] if better else values[2:] <= values[0]
        numbers[key] = {
            "this": values[0],
            "leave_one_out": values[1],
            "random": values[2:].mean(),
            "chance": (1 + ahead.sum()) / (1 + CHANCES),  # of a random order to be as good
        }
    for key in ("deletion", "insertion"):
        lines = np.array([row[f"{key}_curve"] for row in found])
        low, high = np.quantile(lines[2:], [0.05, 0.95], axis=0)
        curves[key] = {
            "this": lines[0], "leave_one_out": lines[1], "random": lines[2:].mean(0), "random_low": low,
            "random_high": high,
        }  # fmt: skip
    steady = stability(model, method, explanation) if explanation.selected is None else None
    return Trust(tuple(sentences(explanation, numbers, steady)), numbers, curves, steady)


def method_of(explanation: Explanation) -> Method:
    name = Spec.parse(explanation.method).name
    found: Method = (searches if name in searches and name not in methods else methods).build(explanation.method)
    return found


def explained_by(name: str, model: Model, explanation: Explanation) -> Explanation:
    """The same text, target and units by another method."""
    scores = once_more(model, methods.build(name), explanation)
    return replace(explanation, scores=scores, method=name, selected=None, order=None, diagnostics={}, parts={})


def ordered(explanation: Explanation, order: np.ndarray) -> Explanation:
    """The units in this order, with a rationale of the same size where there is one."""
    scores = np.empty(len(order))
    scores[order] = np.arange(len(order), 0, -1)
    selected = None
    if explanation.selected is not None:
        selected = np.zeros(len(order), bool)
        selected[order[: int(explanation.selected.sum())]] = True
    return replace(explanation, scores=scores, selected=selected, order=None, method="random", diagnostics={}, parts={})


def stability(model: Model, method: Method, explanation: Explanation) -> float | None:
    """The smallest rank correlation between two of five seeds; None where the seed changes nothing."""
    scores = []
    for seed in range(SEEDS):
        progress.report(seed, SEEDS, "seeds")
        with progress.silence():
            scores.append(once_more(model, method, explanation, seed=seed))
        if seed == 1 and np.array_equal(scores[0], scores[1]):
            return None
    return min(spearman(a, b) for i, a in enumerate(scores) for b in scores[:i])


def sentences(explanation: Explanation, numbers: dict[str, dict[str, float]], steady: float | None) -> list[str]:
    """In words first: does it beat chance, does it find what leave-one-out finds, does it hold still?"""
    name = Spec.parse(explanation.method).name
    said = explanation.diagnostics.get("prediction")
    measured = "value" if isinstance(said, dict) and "value" in said else "probability"  # of a regression, a function
    what = "the preference over the contrast" if explanation.target.contrast else f"the {measured}"
    chosen = explanation.selected
    unordered = not chosen.any() if chosen is not None else not np.ptp(explanation.scores)
    found = [
        "It puts nothing in order: there is nothing to trust or to doubt."
        if unordered
        else against_chance(explanation, numbers)
    ]
    if name != "leave_one_out" and not unordered:
        found.append(against_leaving_out(numbers["deletion"], what))
    alone, without = numbers["sufficiency"], numbers["comprehensiveness"]
    part = "The rationale" if explanation.selected is not None else f"Its strongest {explanation.units.level}s"
    found.append(
        f"{part} alone: {what} falls by {signed(alone['this'])}; left out: by {signed(without['this'])} "
        f"(random parts of the same size: {signed(alone['random'])} and {signed(without['random'])})."
    )
    if steady is None and (chosen is None or name in DRAWS_NOTHING):
        found.append("It is the same with every seed.")
    elif steady is not None:
        calm = ", which is steady." if steady >= STEADY else ": take more samples."
        found.append(f"Two runs with other seeds have ranks that correlate by {signed(steady)} or more{calm}")
    return found


def against_chance(explanation: Explanation, numbers: dict[str, dict[str, float]]) -> str:
    units = f"{explanation.units.level}s"
    gone, come = (numbers[key]["chance"] for key in ("deletion", "insertion"))
    if max(gone, come) <= LIKELY:
        return (
            f"Its order means something: whether {units} are taken away or put back in this order, at most "
            f"{max(gone, come):.0%} of random orders do as well."
        )
    if min(gone, come) > LIKELY:
        return (
            f"Its order is no better than chance on this text: of random orders {gone:.0%} do as well when {units} are "
            f"taken away, and {come:.0%} when they are put back."
        )
    done, other = ("taken away", "put back") if gone <= come else ("put back", "taken away")
    return (
        f"Its order is better than chance when {units} are {done}, but not when they are {other} "
        f"({max(gone, come):.0%} of random orders do as well): trust it half."
    )


def against_leaving_out(gone: dict[str, float], what: str) -> str:
    if abs(gone["this"] - gone["leave_one_out"]) < NEAR:
        return "Taking away in its order does as much as in that of leave-one-out."
    word = "more" if gone["this"] < gone["leave_one_out"] else "less"
    return (
        f"Taking away in its order does {word} than in that of leave-one-out: {what} is {gone['this']:.3f} on the way, "
        f"against {gone['leave_one_out']:.3f}."
    )


def signed(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}".replace("-", "−")  # no minus before a zero
