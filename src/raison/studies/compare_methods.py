"""`compare`: paired tests of two methods of an evaluation on the same texts, number by number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

__all__ = ["Pair", "Verdict", "compare", "compare_pairs"]

SIGNIFICANT = 0.05  # corrected p-values below this decide


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True)
class Pair:
    """Two methods that are compared in one number."""

    one: str
    other: str
    column: Column


@dataclass(frozen=True)
class PairedCells:
    """The numbers of two methods on the same texts, and how their difference is tested."""

    pair: Pair
    first: Cell
    second: Cell
    seed: int
    level: float

    def test(self) -> Comparison:
        """The paired permutation test."""
        if self.first.recall_parts is not None:
            return averaged_f1_permutation_test(
                compared_averaged_f1s(self.first),
                compared_averaged_f1s(self.second),
                seed=self.seed,
            )
        if self.pair.column.pooled:
            return pooled_permutation_test(*self.shares_of_both(), seed=self.seed)
        return permutation_test(
            compared_values_or_nan(self.first), compared_values_or_nan(self.second), seed=self.seed
        )

    def gap_interval(self) -> Interval:
        """The interval of the difference."""
        if self.first.recall_parts is not None:
            return averaged_f1_gap_interval(
                compared_averaged_f1s(self.first),
                compared_averaged_f1s(self.second),
                seed=self.seed,
                level=self.level,
            )
        if self.pair.column.pooled:
            return pooled_gap_interval(*self.shares_of_both(), seed=self.seed, level=self.level)
        first, second = self.values_of_both()
        return mean_interval(first - second, seed=self.seed, level=self.level)

    def shares_of_both(self) -> tuple[list[Share], list[Share]]:
        return compared_shares_of_texts(
            self.first.parts, self.first.wholes
        ), compared_shares_of_texts(self.second.parts, self.second.wholes)

    def values_of_both(self) -> tuple[np.ndarray, np.ndarray]:
        """[n] the numbers of both methods, of the texts for which both are defined."""
        first = compared_values_or_nan(self.first)
        second = compared_values_or_nan(self.second)
        known = ~(np.isnan(first) | np.isnan(second))
        return first[known], second[known]

    def verdict(self, test: Comparison, corrected: float) -> Verdict:
        """What a test says, with interval and effect sizes."""
        gap = self.gap_interval()
        first, second = self.values_of_both()
        effect = cohens_d(first, second) if len(first) > 1 else np.nan
        likely = superiority(first, second) if len(first) else np.nan
        return Verdict(
            key=self.pair.column.key,
            one=self.pair.one,
            other=self.pair.other,
            difference=finite_number_or_none(test.difference),
            low=finite_number_or_none(gap.low),
            high=finite_number_or_none(gap.high),
            p=float(test.p),
            corrected=float(corrected),
            effect=finite_number_or_none(effect),
            superiority=finite_number_or_none(likely),
            count=test.count,
            better=self.better(test.difference, corrected),
        )

    def better(self, difference: float, corrected: float) -> str:
        """The method that is better, or "" where that can't be said."""
        higher_is_better = self.pair.column.higher
        if higher_is_better is None or corrected >= SIGNIFICANT:
            return ""
        one_is_better = (difference > 0) == higher_is_better
        return self.pair.one if one_is_better else self.pair.other


def compare(evaluation: Evaluation, one: str, other: str) -> list[Verdict]:
    """Every number of two methods, tested; p-values are corrected for the number of columns."""
    for name in (one, other):
        if name not in evaluation.methods:
            raise InputError(
                f"This evaluation has no {name!r}: it has {', '.join(evaluation.methods)}."
            )
    pairs = []
    for column in evaluation.columns:
        pairs.append(Pair(one, other, column))
    return compare_pairs(evaluation, pairs)


def compare_pairs(evaluation: Evaluation, pairs: Sequence[Pair]) -> list[Verdict]:
    """Several comparisons, corrected together."""
    compared = []
    for pair in pairs:
        cells = PairedCells(
            pair=pair,
            first=evaluation.cell(pair.one, pair.column.key),
            second=evaluation.cell(pair.other, pair.column.key),
            seed=int(evaluation.settings.get("seed", 0)),
            level=float(evaluation.settings.get("level", 0.95)),
        )
        compared.append(cells)

    tests = [cells.test() for cells in compared]
    corrected = np.ones(len(tests))
    tested = [
        place for place, test in enumerate(tests) if test.count
    ]  # what was not measured is no test
    corrected[tested] = holm([tests[place].p for place in tested])
    verdicts = []
    for cells, test, p in zip(compared, tests, corrected, strict=True):
        verdicts.append(cells.verdict(test, p))
    return verdicts


def compared_shares_of_texts(
    parts: Sequence[float] | None, wholes: Sequence[float] | None
) -> list[Share]:
    """What each text adds to a pooled number."""
    shares = []
    for part, whole in zip(parts or (), wholes or (), strict=True):
        shares.append(Share(part, whole))
    return shares


def compared_averaged_f1s(cell: Cell) -> list[AveragedF1]:
    """What each text adds to the F1 of averages."""
    precisions = compared_shares_of_texts(cell.parts, cell.wholes)
    recalls = compared_shares_of_texts(cell.recall_parts, cell.recall_wholes)
    averages = []
    for precision, recall in zip(precisions, recalls, strict=True):
        averages.append(AveragedF1(precision, recall))
    return averages


def compared_values_or_nan(cell: Cell) -> np.ndarray:
    """[n] the number of each text; NaN where it is not defined."""
    return np.array([np.nan if value is None else value for value in cell.each], dtype=np.float64)


def finite_number_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
