"""Is one method better than another, on the same texts? Paired tests of every number of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import Cell, Column, Evaluation
from raison.metrics.base import AveragedF1, Share
from raison.metrics.statistics import (
    Comparison,
    Interval,
    averaged_f1_gap_interval,
    averaged_f1_permutation_test,
    cohens_d,
    holm,
    mean_interval,
    permutation_test,
    pooled_gap_interval,
    pooled_permutation_test,
    superiority,
)

__all__ = ["Verdict", "compare", "tested"]


@dataclass(frozen=True)
class Verdict:
    """The difference of two methods in one number."""

    key: str
    one: str
    other: str
    difference: float | None  # one − other
    low: float | None  # interval of the difference
    high: float | None
    p: float  # two-sided, paired permutation test
    corrected: float  # by Holm's rule for all that was compared together
    effect: float | None  # Cohen's d of the paired differences
    superiority: float | None  # share of texts on which `one` is higher, ties half
    count: int  # texts
    better: str  # the method that is better, or "" where that can't be said at 5 %


def compare(evaluation: Evaluation, one: str, other: str) -> list[Verdict]:
    """Every number of two methods, tested; p-values are corrected for the number of columns."""
    for name in (one, other):
        if name not in evaluation.methods:
            raise InputError(f"This evaluation has no {name!r}: it has {', '.join(evaluation.methods)}.")
    return tested(evaluation, [(one, other, column) for column in evaluation.columns])


def tested(evaluation: Evaluation, pairs: list[tuple[str, str, Column]]) -> list[Verdict]:
    """Several comparisons, corrected together."""
    cells = [(evaluation.cell(one, c.key), evaluation.cell(other, c.key)) for one, other, c in pairs]
    seed = int(evaluation.settings.get("seed", 0))
    how: dict[str, Any] = {"seed": seed, "level": float(evaluation.settings.get("level", 0.95))}
    found = [paired(a, b, column, seed) for (a, b), (_, _, column) in zip(cells, pairs, strict=True)]
    corrected = np.ones(len(found))
    there = [k for k, each in enumerate(found) if each.count]  # what was not measured is no test
    corrected[there] = holm([found[k].p for k in there])
    verdicts = []
    for (one, other, column), (a, b), test, p in zip(pairs, cells, found, corrected, strict=True):
        first, second = values(a), values(b)
        known = ~(np.isnan(first) | np.isnan(second))
        moved = first[known] - second[known]
        gap = gap_interval(a, b, column, moved, how)
        effect = cohens_d(first[known], second[known]) if known.sum() > 1 else np.nan
        leads = "" if column.higher is None or p >= 0.05 else one if (test.difference > 0) == column.higher else other
        likely = superiority(first[known], second[known]) if known.any() else np.nan
        told = (float(test.p), float(p), number(effect), number(likely), test.count, leads)
        verdicts.append(
            Verdict(column.key, one, other, number(test.difference), number(gap.low), number(gap.high), *told)
        )
    return verdicts


def gap_interval(one: Cell, other: Cell, column: Column, moved: np.ndarray, how: dict[str, Any]) -> Interval:
    """Of the difference of two numbers."""
    if one.recall_parts is not None:
        return averaged_f1_gap_interval(averages(one), averages(other), **how)
    return pooled_gap_interval(shares(one), shares(other), **how) if column.pooled else mean_interval(moved, **how)


def paired(one: Cell, other: Cell, column: Column, seed: int) -> Comparison:
    if one.recall_parts is not None:
        return averaged_f1_permutation_test(averages(one), averages(other), seed=seed)
    if column.pooled:
        return pooled_permutation_test(shares(one), shares(other), seed=seed)
    return permutation_test(values(one), values(other), seed=seed)


def shares(cell: Cell) -> list[Share]:
    return [Share(part, whole) for part, whole in zip(cell.parts or (), cell.wholes or (), strict=True)]


def averages(cell: Cell) -> list[AveragedF1]:
    recalls = zip(cell.recall_parts or (), cell.recall_wholes or (), strict=True)
    return [AveragedF1(one, Share(*other)) for one, other in zip(shares(cell), recalls, strict=True)]


def values(cell: Cell) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in cell.each], dtype=np.float64)


def number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
