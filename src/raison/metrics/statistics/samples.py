"""Samples of examples as arrays, checked: single numbers, pairs, and sums that make pooled numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from raison.core.errors import InputError
from raison.metrics.numbers import AveragedF1, Share

__all__ = [
    "ROUNDING",
    "PooledPairs",
    "examples_as_floats",
    "examples_without_nan",
    "f1_gap_of_sums",
    "f1_of_sums",
    "paired_differences",
    "paired_shares",
    "paired_sums",
    "parts_and_wholes",
    "sums_of_shares",
]

ROUNDING = 1e-12  # relative size of what is only rounding


def examples_as_floats(values: ArrayLike) -> np.ndarray:
    """[n] the numbers of examples; NaN is allowed."""
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 1:
        raise InputError(
            f"Numbers of examples come in one list, not in a table of {numbers.shape}."
        )
    if np.isinf(numbers).any():
        raise InputError("A statistic of infinite numbers does not exist: leave them out.")
    return numbers


def examples_without_nan(values: np.ndarray) -> np.ndarray:
    """The numbers that exist."""
    numbers: np.ndarray = values[~np.isnan(values)]
    return numbers


def paired_differences(first: ArrayLike, second: ArrayLike) -> np.ndarray:
    """[n] first − second of the pairs that have both."""
    a = examples_as_floats(first)
    b = examples_as_floats(second)
    check_paired(len(a), len(b))
    return examples_without_nan(a - b)


def check_paired(first: int, second: int) -> None:
    """Refuse lists of different length."""
    if first != second:
        raise InputError(f"Paired numbers must be of the same examples, not {first} and {second}.")


# -- shares -------------------------------------------------------------------------------------------------


def parts_and_wholes(shares: Sequence[Share]) -> tuple[np.ndarray, np.ndarray]:
    """[n] parts and [n] wholes; a missing number (NaN) is a whole of 0."""
    parts = examples_as_floats([share.part for share in shares])
    wholes = examples_as_floats([share.whole for share in shares])
    missing = np.isnan(parts) | np.isnan(wholes)
    parts = np.where(missing, 0.0, parts)
    wholes = np.where(missing, 0.0, wholes)
    if (wholes < 0).any():
        raise InputError("The whole of a share can't be negative.")
    return parts, wholes


@dataclass(frozen=True)
class PooledSample:
    """Parts and wholes of one method."""

    parts: np.ndarray  # [n]
    wholes: np.ndarray  # [n]

    def ratio(self) -> float:
        """Σ parts / Σ wholes."""
        return float(self.parts.sum()) / float(self.wholes.sum())

    def ratios_without_each(self) -> np.ndarray:
        """[n] the ratio without each example."""
        parts_left = float(self.parts.sum()) - self.parts
        wholes_left = float(self.wholes.sum()) - self.wholes
        return parts_left / wholes_left


@dataclass(frozen=True)
class PooledPairs:
    """Two methods on the examples where both have a whole."""

    first: PooledSample
    second: PooledSample
    excluded: int  # examples without a whole on one side

    @property
    def count(self) -> int:
        """How many examples are left."""
        return len(self.first.parts)

    def differences(self) -> np.ndarray:
        """[n 2] first − second of parts and of wholes."""
        parts = self.first.parts - self.second.parts
        wholes = self.first.wholes - self.second.wholes
        return np.stack([parts, wholes], 1)


def paired_shares(first: Sequence[Share], second: Sequence[Share]) -> PooledPairs:
    """The pairs of shares in which both have a whole."""
    check_paired(len(first), len(second))
    first_parts, first_wholes = parts_and_wholes(first)
    second_parts, second_wholes = parts_and_wholes(second)
    kept = (first_wholes > 0) & (second_wholes > 0)
    return PooledPairs(
        first=PooledSample(first_parts[kept], first_wholes[kept]),
        second=PooledSample(second_parts[kept], second_wholes[kept]),
        excluded=int((~kept).sum()),
    )


# -- F1 of averaged precision and recall --------------------------------------------------------------------


def sums_of_shares(values: Sequence[AveragedF1]) -> tuple[np.ndarray, int]:
    """[n 4] sum and count of precisions, sum and count of recalls; and how many examples without both are left out."""
    return examples_with_counts(table_of_sums(values))


def paired_sums(
    first: Sequence[AveragedF1], second: Sequence[AveragedF1]
) -> tuple[np.ndarray, int]:
    """[n 8] the sums of each side; and how many examples without any of them are left out."""
    check_paired(len(first), len(second))
    tables = [table_of_sums(first), table_of_sums(second)]
    return examples_with_counts(np.concatenate(tables, axis=1))


def table_of_sums(values: Sequence[AveragedF1]) -> np.ndarray:
    """[n 4] sum and count of precisions, sum and count of recalls."""
    rows = [value.sums for value in values]
    table = np.array(rows, dtype=np.float64)
    return table.reshape(len(rows), 4)


def examples_with_counts(table: np.ndarray) -> tuple[np.ndarray, int]:
    """The rows in which a count is above 0, and how many others there are; every second column is a count."""
    counts = table[:, 1::2]
    kept = np.any(counts > 0, axis=1)
    excluded = int((~kept).sum())
    return table[kept], excluded


def f1_of_sums(sums: np.ndarray) -> np.ndarray:
    """[..] F1 of the averages in sums [.. 4]; 0 where there is nothing to divide by."""
    precision_sum, precision_count, recall_sum, recall_count = np.moveaxis(sums, -1, 0)
    precision = divide_sums_or_zero(precision_sum, precision_count)
    recall = divide_sums_or_zero(recall_sum, recall_count)
    product = 2 * precision * recall
    return divide_sums_or_zero(product, precision + recall)


def f1_gap_of_sums(sums: np.ndarray) -> np.ndarray:
    """[..] F1 of the first minus F1 of the second, of sums [.. 8]."""
    first = f1_of_sums(sums[..., :4])
    second = f1_of_sums(sums[..., 4:])
    gap: np.ndarray = first - second
    return gap


def divide_sums_or_zero(part: np.ndarray, total: np.ndarray) -> np.ndarray:
    """part / total; 0 where the total is no more than rounding leaves of nothing."""
    exists = total > ROUNDING
    divisor = np.where(exists, total, 1.0)
    return np.where(exists, part / divisor, 0.0)
