"""Corrections of the p-values of many comparisons for their number: Holm, Benjamini-Hochberg."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from raison.core.errors import InputError

__all__ = ["benjamini_hochberg", "holm"]


def holm(p: ArrayLike) -> np.ndarray:
    """p-values corrected for their number, so that any false claim is improbable (Holm 1979).

    Sorted ascending, the i-th of m becomes max_{j ≤ i} min(1, (m − j + 1) p_(j)). A NaN is no comparison and stays NaN.
    """
    corrected = copy_of_p_values(p)
    order = ascending_order_of_p_values(corrected)
    ordered = corrected[order]
    m = len(order)
    scaled = ordered * np.arange(m, 0, -1)
    largest_up_to_here = np.maximum.accumulate(scaled)
    corrected[order] = np.minimum(largest_up_to_here, 1.0)
    return corrected


def benjamini_hochberg(p: ArrayLike) -> np.ndarray:
    """p-values corrected so that few of the claims are false: false discovery rate (Benjamini & Hochberg 1995).

    Sorted ascending, the i-th of m becomes min_{j ≥ i} min(1, m / j · p_(j)). A NaN is no comparison and stays NaN.
    """
    corrected = copy_of_p_values(p)
    order = ascending_order_of_p_values(corrected)
    ordered = corrected[order]
    m = len(order)
    ranks = np.arange(1, m + 1)
    scaled = ordered * m / ranks
    from_the_last = np.minimum.accumulate(scaled[::-1])
    smallest_from_here = from_the_last[::-1]
    corrected[order] = np.minimum(smallest_from_here, 1.0)
    return corrected


def copy_of_p_values(p: ArrayLike) -> np.ndarray:
    """[m] the p-values in an array of their own."""
    p_values = np.array(p, np.float64)
    outside = (p_values < 0) | (p_values > 1)
    if p_values.ndim != 1 or outside.any():
        raise InputError("p-values are numbers from 0 to 1 in one list.")
    return p_values


def ascending_order_of_p_values(p_values: np.ndarray) -> np.ndarray:
    """The places of the p-values from the smallest to the largest, without NaN."""
    known = np.flatnonzero(~np.isnan(p_values))
    order = np.argsort(p_values[known], kind="stable")
    return known[order]
