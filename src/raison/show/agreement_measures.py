"""How far two methods agree about scores of the same units: correlations (Pearson, Spearman, Kendall's tau-b),
shared strongest units.

Kendall's tau-b, Spearman's rho and Pearson's r are correlations of the signs of all differences, of the ranks, and of
the scores themselves. A vector that is constant has no order: then there is no number, and None is returned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from raison.show.colour_scale import has_negative_scores, relative_weights

__all__ = [
    "MethodAgreement",
    "MethodPair",
    "PairAgreements",
    "agreement_of_pairs",
    "chance_of_sharing_strongest",
    "close_method_pairs",
    "comparable_scores",
    "count_inversions",
    "count_of_strongest_units",
    "count_shared_strongest",
    "kendall_tau_b",
    "least_tau_alike",
    "measure_agreement",
    "methods_apart",
    "pearson_r",
    "score_ranks",
    "scores_are_constant",
    "spearman_rho",
]

# this many units count as the strongest, or this share of all, whichever is more
FEWEST_STRONGEST = 3
SHARE_OF_STRONGEST = 0.2
ALIKE = 0.3  # tau-b from which two orders are called alike, if chance does not reach it as well
# standard deviations, and how often chance goes beyond them
RARE_DEVIATIONS = 2.5
RARE_PROBABILITY = 1 / 160


@dataclass(frozen=True)
class MethodAgreement:
    """What two methods have in common; None where one of them is constant."""

    shared: int | None  # strongest units of both, on the same side where both have signs
    tau: float | None
    rho: float | None
    r: float | None
    by_size: bool  # compared by size, since one of them has no negative scores


MethodPair = tuple[int, int]  # the places of two methods, the smaller first
PairAgreements = Mapping[MethodPair, MethodAgreement]


def measure_agreement(one: np.ndarray, other: np.ndarray) -> MethodAgreement:
    """All measures of two vectors of scores [u]."""
    one_has_signs = has_negative_scores(one)
    other_has_signs = has_negative_scores(other)
    by_size = one_has_signs != other_has_signs
    a, b = comparable_scores(one, other)
    if scores_are_constant(a) or scores_are_constant(b):
        return MethodAgreement(shared=None, tau=None, rho=None, r=None, by_size=by_size)
    return MethodAgreement(
        shared=count_shared_strongest(a, b, count_of_strongest_units(len(a))),
        tau=kendall_tau_b(a, b),
        rho=spearman_rho(a, b),
        r=pearson_r(a, b),
        by_size=by_size,
    )


def agreement_of_pairs(scores: Sequence[np.ndarray]) -> dict[MethodPair, MethodAgreement]:
    """What every two vectors have in common."""
    agreements = {}
    for i, j in combinations(range(len(scores)), 2):
        agreements[i, j] = measure_agreement(scores[i], scores[j])
    return agreements


def comparable_scores(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two vectors as they can be compared: where only one of them has negative scores, both by size."""
    if has_negative_scores(one) == has_negative_scores(other):
        return one, other
    return np.abs(one), np.abs(other)


def scores_are_constant(scores: np.ndarray) -> bool:
    """Whether scores put units into no order."""
    return len(scores) < 2 or bool((scores == scores[0]).all())


# -- the strongest units ------------------------------------------------------------------------------------


def count_of_strongest_units(size: int) -> int:
    """How many units count as the strongest of `size`: three or a fifth, and never more than half."""
    count = max(FEWEST_STRONGEST, math.ceil(SHARE_OF_STRONGEST * size))
    return max(1, min(count, size // 2))


def strongest_units(scores: np.ndarray, count: int) -> set[int]:
    """The units that are largest in size and not 0; of equal ones the first."""
    by_size = np.argsort(-np.abs(scores), kind="stable")
    return {int(unit) for unit in by_size[:count] if scores[unit]}


def count_shared_strongest(one: np.ndarray, other: np.ndarray, count: int) -> int:
    """How many of the strongest units two vectors share, with the same sign."""
    in_both = strongest_units(one, count) & strongest_units(other, count)
    shared = 0
    for unit in in_both:
        same_sign = np.sign(one[unit]) == np.sign(other[unit])
        shared += int(same_sign)
    return shared


def chance_of_sharing_strongest(shared: int, size: int) -> float:
    """How likely it is that unrelated methods share so many of the strongest of `size` units, or more.

    P(X = x) ∝ C(k, x) · C(n − k, k − x): the hypergeometric distribution, in logarithms since it has long tails.
    """
    k = count_of_strongest_units(size)
    x = np.arange(k)
    missing = k - x
    not_shared = size - 2 * k + x + 1
    steps = 2 * np.log(missing) - np.log((x + 1) * not_shared)  # from x to x + 1
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logs - logs.max())
    tail = weights[shared:].sum()
    return float(tail / weights.sum())


# -- correlations -------------------------------------------------------------------------------------------


def pearson_r(one: np.ndarray, other: np.ndarray) -> float | None:
    """r = Σ (a − ā)(b − b̄) / √(Σ (a − ā)² · Σ (b − b̄)²)."""
    if scores_are_constant(one) or scores_are_constant(other):
        return None
    a = relative_score_deviations(one)
    b = relative_score_deviations(other)
    length = math.sqrt(float(a @ a) * float(b @ b))
    if not length:
        return None
    r = float(a @ b) / length
    return max(-1.0, min(1.0, r))


def relative_score_deviations(scores: np.ndarray) -> np.ndarray:
    """Deviations from the mean, the largest ±1; of relative scores, since squares of tiny ones would vanish."""
    weights = relative_weights(scores)
    return relative_weights(weights - weights.mean())


def score_ranks(scores: np.ndarray) -> np.ndarray:
    """[u] 1 for the lowest score; equal scores share the mean of their ranks."""
    _, group, size = np.unique(scores, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(size) - (size - 1) / 2
    return mean_ranks[group]


def spearman_rho(one: np.ndarray, other: np.ndarray) -> float | None:
    """rho = r of the ranks."""
    return pearson_r(score_ranks(one), score_ranks(other))


def kendall_tau_b(one: np.ndarray, other: np.ndarray) -> float | None:
    """tau-b = (C − D) / √((P − T_a)(P − T_b)): pairs in the same and in opposite order, of P pairs without the T ties.

    Counted in n log n steps (Knight 1966): sorted by one, discordant pairs are the inversions of the other.
    """
    if scores_are_constant(one) or scores_are_constant(other):
        return None
    a = dense_score_ranks(one)
    b = dense_score_ranks(other)
    pairs = len(a) * (len(a) - 1) // 2
    tied_a = count_tied_pairs(a)
    tied_b = count_tied_pairs(b)
    tied_both = count_tied_pairs(a * len(b) + b)

    by_both = np.lexsort((b, a))  # ties in `one` are in order and do not count
    discordant = count_inversions(b[by_both])
    surplus = pairs - tied_a - tied_b + tied_both - 2 * discordant
    return surplus / math.sqrt((pairs - tied_a) * (pairs - tied_b))


def dense_score_ranks(scores: np.ndarray) -> np.ndarray:
    """[u] 0 for the lowest score, 1 for the next different one, and so on."""
    _, ranks = np.unique(scores, return_inverse=True)
    return ranks


def count_tied_pairs(numbers: np.ndarray) -> int:
    """Pairs of equal numbers."""
    size = np.bincount(dense_score_ranks(numbers))
    return int((size * (size - 1) // 2).sum())


def count_inversions(places: np.ndarray) -> int:
    """Pairs i < j with places[i] > places[j], bit by bit: numbers that agree in all higher bits differ in this one."""
    count = 0
    for bit in range(int(places.max()).bit_length()):
        high = places >> (bit + 1)
        order = np.argsort(high, kind="stable")
        ones = (places[order] >> bit) & 1
        ones_before = np.cumsum(ones) - ones  # in all groups so far
        start = np.searchsorted(high[order], high[order])  # first place of each one's group
        ones_in_group = ones_before - ones_before[start]
        count += int(ones_in_group[ones == 0].sum())
    return count


# -- who agrees with whom -----------------------------------------------------------------------------------


def least_tau_alike(size: int) -> float:
    """The tau-b from which two orders of `size` units are called alike.

    Chance gives unrelated orders a tau with σ² = 2(2n + 5) / 9n(n − 1) (Kendall 1938); 2.5 σ above 0 is reached once in
    160 pairs, and a few methods make many pairs. In a long text chance is small, and ALIKE is the bound.
    """
    if size < 2:
        return math.inf
    deviation = math.sqrt(2 * (2 * size + 5) / (9 * size * (size - 1)))
    return max(ALIKE, RARE_DEVIATIONS * deviation)


def close_method_pairs(agreements: PairAgreements, size: int) -> list[MethodPair]:
    """The pairs that are alike in order, or share more of the strongest units than chance would."""
    return [pair for pair, agreement in agreements.items() if methods_are_close(agreement, size)]


def methods_are_close(agreement: MethodAgreement, size: int) -> bool:
    """Whether two methods are alike in order, or share more of the strongest units than chance would."""
    if agreement.tau is None or agreement.shared is None:
        return False
    if agreement.tau >= least_tau_alike(size):
        return True
    return chance_of_sharing_strongest(agreement.shared, size) <= RARE_PROBABILITY


def methods_apart(agreements: PairAgreements, size: int) -> list[int]:
    """The methods that are close to no other; what is constant is neither."""
    with_order: set[int] = set()
    for pair, agreement in agreements.items():
        if agreement.tau is not None:
            with_order.update(pair)
    near: set[int] = set()
    for pair in close_method_pairs(agreements, size):
        near.update(pair)
    return sorted(with_order - near)
