"""`trust`: can this one explanation be trusted? One verdict from three tests: chance, other seeds, removal.

A corpus is judged by `evaluate`; one text is judged here by the same metrics, with many random orders of its units in
the place of many texts: how often does chance do as well?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from raison.core import progress
from raison.core.errors import InputError
from raison.core.json_record import Record
from raison.core.records import Explanation
from raison.core.registry import methods, metrics
from raison.core.spec import Spec
from raison.engine import method_scores_again
from raison.methods.base import Method
from raison.metrics.base import Metric, Numbers, Subject
from raison.metrics.metric_runner import measure_explanations
from raison.metrics.rank_correlation import spearman
from raison.models.protocol import Model
from raison.studies.method_lists import build_method_or_search
from raison.studies.trust_verdict import trust_verdict

__all__ = ["Trust", "trust", "trust_each"]

METRICS = ("deletion", "insertion", "comprehensiveness", "sufficiency")
PAIRS = 50  # random orders, each with its reverse: what the one takes away the other puts back, so half is asked
SEEDS = 5
ROUNDING = 1e-9  # a spread of values in 0..1 below this is none
DETERMINISTIC_SEARCHES = ("greedy", "exact", "refined")

# metric or "order" -> this, leave_one_out, random, chance
Comparisons = dict[str, dict[str, float]]
# deletion, insertion -> the same, and random_low, random_high
Curves = dict[str, dict[str, list[float]]]


@dataclass(frozen=True, eq=False)
class Trust(Record):
    """What was measured about one explanation, and what that means."""

    verdict: str  # one of trust_verdict.VERDICTS
    sentences: tuple[str, ...]  # the verdict first, then what each test found
    numbers: Comparisons = field(default_factory=dict)
    curves: Curves = field(default_factory=dict)
    # smallest correlation of ranks between two seeds; None: no chance is involved
    stability: float | None = None


def trust(
    model: Model, explanation: Explanation, seed: int = 0, removal: str | None = None
) -> Trust:
    """Measure one explanation of this model; `removal` says what absence means (None: as for the explanation)."""
    (result,) = trust_each(model, [explanation], seed=seed, removal=removal)
    return result


def trust_each(
    model: Model, explanations: Sequence[Explanation], *, seed: int = 0, removal: str | None = None
) -> list[Trust]:
    """Measure several explanations of one text, target and kind of units, against the same random orders.

    The model is asked about each set of units once, so one explanation more costs little.
    """
    first = explanations[0]
    if len(first.units) < 2:
        raise InputError(
            "The text has one unit, so there is nothing to put in order: give a longer text."
        )
    removal = removal or first.removal or model.removals[0]
    reference = explained_by_other_method("leave_one_out", model, replace(first, removal=removal))

    subjects = []
    for explanation in explanations:
        compared = [explanation, reference, *random_orders_for_trust(explanation, seed)]
        for each in compared:
            subjects.append(Subject(each, model=model, removal=removal))
    built = [metrics.build(name) for name in METRICS]
    rows: list[Numbers] = []
    for numbers_of_metrics in measure_explanations(model, subjects, built):
        row: Numbers = {}
        for numbers_of_metric in numbers_of_metrics:
            row.update(numbers_of_metric)
        rows.append(row)

    results = []
    size = len(subjects) // len(explanations)
    for place, explanation in enumerate(explanations):
        rows_of_explanation = rows[place * size : (place + 1) * size]
        numbers, curves = compare_with_chance(built, rows_of_explanation)
        method = build_method_or_search(explanation.method)
        stability = stability_over_seeds(model, method, explanation)
        verdict, sentences = trust_verdict(explanation, numbers, stability)
        results.append(Trust(verdict, tuple(sentences), numbers, curves, stability))
    return results


def compare_with_chance(
    built: Sequence[Metric], rows: Sequence[Numbers]
) -> tuple[Comparisons, Curves]:
    """Each metric's numbers and curves: of an explanation (row 0), of leave-one-out (row 1) and of random orders."""
    values = {}
    comparisons = {}
    for metric in built:
        key = metric.keys[0]
        column = []
        for row in rows:
            column.append(float(row[key.name]))
        values[key.name] = np.array(column)
        higher = key.direction == "higher"
        comparisons[key.name] = number_against_chance(values[key.name], higher)
    inserted = standardised_trust_values(values["insertion"])
    deleted = standardised_trust_values(values["deletion"])
    both = inserted - deleted
    comparisons["order"] = number_against_chance(both, higher=True)

    curves = {}
    for name in ("deletion", "insertion"):
        lines = []
        for row in rows:
            lines.append(row[f"{name}_curve"])
        curves[name] = trust_curves_with_band(np.array(lines))
    return comparisons, curves


def standardised_trust_values(values: np.ndarray) -> np.ndarray:
    """In standard deviations from the mean of all orders but leave-one-out's, so that two metrics weigh the same.

    This explanation is among those orders: if it is one like the random ones, each is as likely to come first.
    """
    orders = np.delete(values, 1)
    spread = orders.std()
    if spread <= ROUNDING:
        return np.zeros(len(values))
    standard: np.ndarray = (values - orders.mean()) / spread
    return standard


def number_against_chance(values: np.ndarray, higher: bool) -> dict[str, float]:
    """One number of this explanation, of leave-one-out and of random orders, in this order; and the share of chance.

    chance = (1 + random orders that do at least as well) / (1 + random orders): the p-value of a permutation test.
    """
    this, reference = values[:2]
    random = values[2:]
    as_good = random >= this if higher else random <= this
    count_as_good = int(as_good.sum())
    return {
        "this": float(this),
        "leave_one_out": float(reference),
        "random": float(random.mean()),
        "chance": (1 + count_as_good) / (1 + len(random)),
    }


def trust_curves_with_band(lines: np.ndarray) -> dict[str, list[float]]:
    """The curves of this explanation and of leave-one-out, and the middle 90 % of the random ones."""
    low, high = np.quantile(lines[2:], [0.05, 0.95], axis=0)
    return {
        "this": lines[0].tolist(),
        "leave_one_out": lines[1].tolist(),
        "random": lines[2:].mean(0).tolist(),
        "random_low": low.tolist(),
        "random_high": high.tolist(),
    }


def explained_by_other_method(name: str, model: Model, explanation: Explanation) -> Explanation:
    """The same text, target and units by another method."""
    scores = method_scores_again(model, methods.build(name), explanation)
    return replace(
        explanation, scores=scores, method=name, selected=None, order=None, diagnostics={}, parts={}
    )


def random_orders_for_trust(explanation: Explanation, seed: int) -> list[Explanation]:
    """PAIRS random orders of the units, each followed by its reverse."""
    rng = np.random.default_rng([seed, int(explanation.encoding.content()[:12], 16)])
    found = []
    for _ in range(PAIRS):
        order = rng.permutation(len(explanation.units))
        found += [
            explanation_in_order(explanation, order),
            explanation_in_order(explanation, order[::-1]),
        ]
    return found


def explanation_in_order(explanation: Explanation, order: np.ndarray) -> Explanation:
    """The units in this order, with a rationale of the same size where there is one."""
    scores = np.empty(len(order))
    scores[order] = np.arange(len(order), 0, -1)
    selected = None
    if explanation.selected is not None:
        selected = np.zeros(len(order), bool)
        selected[order[: int(explanation.selected.sum())]] = True
    return replace(
        explanation,
        scores=scores,
        selected=selected,
        order=None,
        method="random",
        diagnostics={},
        parts={},
    )


def stability_over_seeds(model: Model, method: Method, explanation: Explanation) -> float | None:
    """The smallest rank correlation between two of five seeds; None where the seed changes nothing."""
    if Spec.parse(explanation.method).name in DETERMINISTIC_SEARCHES:
        return None
    scores: list[np.ndarray] = []
    for seed in range(SEEDS):
        progress.report(seed, SEEDS, "seeds")
        with progress.silence():
            scores.append(method_scores_again(model, method, explanation, seed=seed))
        if seed == 1 and np.array_equal(scores[0], scores[1]):
            return None
    return min(spearman(a, b) for i, a in enumerate(scores) for b in scores[:i])
