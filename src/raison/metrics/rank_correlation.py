"""Rank correlation of two lists of numbers: Kendall's τ-b and Spearman's ρ."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from raison.core.errors import InputError

__all__ = ["kendall_defined", "kendall_tau", "spearman"]

CELLS = 1 << 20  # pairs at a time: bounds memory


def kendall_tau(first: ArrayLike, second: ArrayLike) -> float:
    """Kendall's τ-b of two lists of numbers: agreement of all pairs, corrected for ties (Kendall 1945; P2 Table 6).

    τ_b = (concordant − discordant) / √((N − ties in x) (N − ties in y)), N = n (n − 1) / 2 pairs. Ties matter: sparse
    attention has many exact zeros. Where one list is constant (or has fewer than two numbers) there is no order to
    agree with: 0, which is what a random order has in the mean; `kendall_defined` tells such cases apart.
    """
    x, y = lists_of_equal_length(first, second)
    agreement, untied_in_x, untied_in_y = count_ranked_pairs(x, y)
    if not untied_in_x or not untied_in_y:
        return 0.0
    x_size = np.sqrt(untied_in_x)
    y_size = np.sqrt(untied_in_y)
    tau = agreement / x_size / y_size
    return float(np.clip(tau, -1.0, 1.0))


def kendall_defined(first: ArrayLike, second: ArrayLike) -> bool:
    """Whether both lists have two different numbers, so that τ is more than a convention."""
    x, y = lists_of_equal_length(first, second)
    x_varies = (x != x[:1]).any()
    y_varies = (y != y[:1]).any()
    return bool(x_varies and y_varies)


def lists_of_equal_length(first: ArrayLike, second: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """[n] both lists as arrays of finite numbers."""
    x = np.asarray(first, np.float64)
    y = np.asarray(second, np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise InputError(
            f"Ranks are compared of two lists of the same length, not {x.shape} and {y.shape}."
        )
    both = np.concatenate([x, y])
    if not np.isfinite(both).all():
        raise InputError("Numbers that are ranked can't be NaN or infinite.")
    return x, y


def count_ranked_pairs(x: np.ndarray, y: np.ndarray) -> tuple[int, int, int]:
    """Concordant − discordant pairs, and pairs that are not tied in x and in y; each pair once."""
    n = len(x)
    x_places = dense_ranks(x)
    y_places = dense_ranks(y)
    agreement = untied_in_x = untied_in_y = 0
    most = max(n, 1)
    step = max(1, CELLS // most)
    for start in range(0, n, step):
        some = slice(start, start + step)
        x_signs = signs_of_ranked_pairs(x_places, some)
        y_signs = signs_of_ranked_pairs(y_places, some)
        products = x_signs * y_signs
        agreement += int(products.sum(dtype=np.int64))
        untied_in_x += int(np.count_nonzero(x_signs))
        untied_in_y += int(np.count_nonzero(y_signs))

    # every pair was met from both sides
    return agreement // 2, untied_in_x // 2, untied_in_y // 2


def dense_ranks(values: np.ndarray) -> np.ndarray:
    """[n] the number of each value among the different ones; differences of these can't overflow or vanish."""
    _, places = np.unique(values, return_inverse=True)
    return places.astype(np.int32)


def signs_of_ranked_pairs(places: np.ndarray, some: slice) -> np.ndarray:
    """[some, n] whether each of some places is above (1), below (−1) or equal to (0) every place."""
    differences = places[some, None] - places
    signs: np.ndarray = np.sign(differences).astype(np.int8)
    return signs


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Correlation of ranks; 1 for equal scores, else 0 where one side does not rank at all."""
    if np.array_equal(first, second):
        return 1.0
    a = centred_ranks(first)
    b = centred_ranks(second)
    a_square = (a**2).sum()
    b_square = (b**2).sum()
    size = float(np.sqrt(a_square * b_square))
    if not size > 0:
        return 0.0
    common = (a * b).sum()
    return float(common / size)


def centred_ranks(values: np.ndarray) -> np.ndarray:
    """[n] ranks minus their mean; equal values share the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    first = np.cumsum(count) - count
    mean_rank = first + (count - 1) / 2
    ranks = mean_rank[place.reshape(-1)]
    centred: np.ndarray = ranks - ranks.mean()
    return centred
