"""How far two methods agree about the same units: pure functions of their scores.

Kendall's tau-b, Spearman's rho and Pearson's r are correlations of the signs of all differences, of the ranks, and of
the scores themselves. A vector that is constant has no order: then there is no number, and None is returned.
page/agreement.js holds the same; a test compares them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from raison.show import scale

__all__ = [
    "Agreement",
    "agreement",
    "agreements",
    "alike",
    "apart",
    "by_chance",
    "close",
    "comparable",
    "overlap",
    "pearson",
    "ranks",
    "spearman",
    "strong",
    "tau_b",
    "top",
]

FEWEST, SHARE = 3, 0.2  # the strongest units: this many, or this share of all, whichever is more
ALIKE = 0.3  # tau-b from which two orders are called alike, if chance does not reach it as well
RARE, SELDOM = 2.5, 1 / 160  # standard deviations, and how often chance goes beyond them


@dataclass(frozen=True)
class Agreement:
    """What two methods have in common; None where one of them is constant."""

    shared: int | None  # units among the strongest of both, and on the same side where both have signs
    tau: float | None
    rho: float | None
    r: float | None
    by_size: bool  # compared by size, since one of them has no negative scores


def agreement(one: np.ndarray, other: np.ndarray) -> Agreement:
    """All measures of two vectors of scores [u]."""
    by_size = scale.signed(one) != scale.signed(other)
    a, b = comparable(one, other)
    if constant(a) or constant(b):
        return Agreement(None, None, None, None, by_size)
    return Agreement(overlap(a, b, top(len(a))), tau_b(a, b), spearman(a, b), pearson(a, b), by_size)


def agreements(scores: list[np.ndarray]) -> dict[tuple[int, int], Agreement]:
    """Every pair of vectors, the smaller number first."""
    return {(i, j): agreement(scores[i], scores[j]) for i, j in combinations(range(len(scores)), 2)}


def comparable(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two vectors as they can be compared: where only one of them has negative scores, both by size."""
    return (one, other) if scale.signed(one) == scale.signed(other) else (np.abs(one), np.abs(other))


def constant(scores: np.ndarray) -> bool:
    return len(scores) < 2 or bool((scores == scores[0]).all())


def top(size: int) -> int:
    """How many units count as the strongest of `size`: three or a fifth, and never more than half."""
    return max(1, min(max(FEWEST, math.ceil(SHARE * size)), size // 2))


def strong(scores: np.ndarray, k: int) -> set[int]:
    """The k units that are largest in size and not 0; of equal ones the first."""
    return {int(u) for u in np.argsort(-np.abs(scores), kind="stable")[:k] if scores[u]}


def overlap(one: np.ndarray, other: np.ndarray, k: int) -> int:
    """How many of the k strongest units two vectors share, with the same sign."""
    return sum(bool(np.sign(one[u]) == np.sign(other[u])) for u in strong(one, k) & strong(other, k))


def pearson(one: np.ndarray, other: np.ndarray) -> float | None:
    """r = Σ (a − ā)(b − b̄) / √(Σ (a − ā)² · Σ (b − b̄)²)."""
    if constant(one) or constant(other):
        return None
    shares = (scale.weights(each) for each in (one, other))  # squares of tiny scores would vanish
    a, b = (scale.weights(each - each.mean()) for each in shares)
    length = math.sqrt(float(a @ a) * float(b @ b))
    return max(-1.0, min(1.0, float(a @ b) / length)) if length else None


def ranks(scores: np.ndarray) -> np.ndarray:
    """[u] 1 for the lowest score; equal scores share the mean of their ranks."""
    _, group, size = np.unique(scores, return_inverse=True, return_counts=True)
    return (np.cumsum(size) - (size - 1) / 2)[group]


def spearman(one: np.ndarray, other: np.ndarray) -> float | None:
    """rho = r of the ranks."""
    return pearson(ranks(one), ranks(other))


def tau_b(one: np.ndarray, other: np.ndarray) -> float | None:
    """tau-b = (C − D) / √((P − T_a)(P − T_b)): pairs in the same and in opposite order, of P pairs without the T ties.

    Counted in n log n steps (Knight 1966): sorted by one, discordant pairs are the inversions of the other.
    """
    if constant(one) or constant(other):
        return None
    a, b = (np.unique(scores, return_inverse=True)[1] for scores in (one, other))
    pairs = len(a) * (len(a) - 1) // 2
    tied_a, tied_b, tied = ties(a), ties(b), ties(a * len(b) + b)
    against = inversions(b[np.lexsort((b, a))])  # ties in `one` are in order and do not count
    surplus = pairs - tied_a - tied_b + tied - 2 * against
    return surplus / math.sqrt((pairs - tied_a) * (pairs - tied_b))


def ties(places: np.ndarray) -> int:
    """Pairs of equal numbers."""
    size = np.bincount(np.unique(places, return_inverse=True)[1])
    return int((size * (size - 1) // 2).sum())


def inversions(places: np.ndarray) -> int:
    """Pairs i < j with places[i] > places[j], bit by bit: numbers that agree in all higher bits differ in this one."""
    found = 0
    for bit in range(int(places.max()).bit_length()):
        high = places >> (bit + 1)
        order = np.argsort(high, kind="stable")
        ones = (places[order] >> bit) & 1
        before = np.cumsum(ones) - ones  # in all groups so far
        start = np.searchsorted(high[order], high[order])  # first place of each one's group
        found += int((before - before[start])[ones == 0].sum())
    return found


def by_chance(shared: int, size: int) -> float:
    """How likely it is that unrelated methods share so many of the strongest of `size` units, or more.

    P(X = x) ∝ C(k, x) · C(n − k, k − x): the hypergeometric distribution, in logarithms since it has long tails.
    """
    k = top(size)
    x = np.arange(k)
    steps = 2 * np.log(k - x) - np.log((x + 1) * (size - 2 * k + x + 1))  # from x to x + 1
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logs - logs.max())
    return float(weights[shared:].sum() / weights.sum())


def close(found: Mapping[tuple[int, int], Agreement], size: int) -> list[tuple[int, int]]:
    """The pairs that are alike in order, or share more of the strongest units than chance would."""
    return [
        pair
        for pair, each in found.items()
        if each.tau is not None
        and each.shared is not None
        and (each.tau >= alike(size) or by_chance(each.shared, size) <= SELDOM)
    ]


def apart(found: Mapping[tuple[int, int], Agreement], size: int) -> list[int]:
    """The methods that are close to no other."""
    known = {i for pair, each in found.items() if each.tau is not None for i in pair}
    return sorted(known - {i for pair in close(found, size) for i in pair})


def alike(size: int) -> float:
    """The tau-b from which two orders of `size` units are called alike.

    Chance gives unrelated orders a tau with σ² = 2(2n + 5) / 9n(n − 1) (Kendall 1938); 2.5 σ above 0 is reached once in
    160 pairs, and a few methods make many pairs. In a long text chance is small, and ALIKE is the bound.
    """
    return max(ALIKE, RARE * math.sqrt(2 * (2 * size + 5) / (9 * size * (size - 1)))) if size > 1 else math.inf
