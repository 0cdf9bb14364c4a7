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
    "count_inversions_of_scores",
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
    count = count_of_strongest_units(len(a))
    return MethodAgreement(
        shared=count_shared_strongest(a, b, count),
        tau=kendall_tau_b(a, b),
        rho=spearman_rho(a, b),
        r=pearson_r(a, b),
        by_size=by_size,
    )


def agreement_of_pairs(scores: Sequence[np.ndarray]) -> dict[MethodPair, MethodAgreement]:
    """What every two vectors have in common."""
    agreements = {}
    places = range(len(scores))
    for pair in combinations(places, 2):
        first, second = pair
        agreements[pair] = measure_agreement(scores[first], scores[second])
    return agreements


def comparable_scores(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two vectors as they can be compared: where only one of them has negative scores, both by size."""
    one_has_signs = has_negative_scores(one)
    other_has_signs = has_negative_scores(other)
    if one_has_signs == other_has_signs:
        return one, other
    return np.abs(one), np.abs(other)


def scores_are_constant(scores: np.ndarray) -> bool:
    """Whether scores put units into no order."""
    if len(scores) < 2:
        return True
    like_the_first = scores == scores[0]
    return bool(like_the_first.all())


# -- the strongest units ------------------------------------------------------------------------------------


def count_of_strongest_units(size: int) -> int:
    """How many units count as the strongest of `size`: three or a fifth, and never more than half."""
    share = math.ceil(SHARE_OF_STRONGEST * size)
    count = max(FEWEST_STRONGEST, share)
    half = size // 2
    return max(1, min(count, half))


def strongest_units(scores: np.ndarray, count: int) -> set[int]:
    """The units that are largest in size and not 0; of equal ones the first."""
    sizes = np.abs(scores)
    largest_first = np.argsort(-sizes, kind="stable")
    strongest = set()
    for unit in largest_first[:count]:
        if scores[unit]:
            strongest.add(int(unit))
    return strongest


def count_shared_strongest(one: np.ndarray, other: np.ndarray, count: int) -> int:
    """How many of the strongest units two vectors share, with the same sign."""
    strongest_of_one = strongest_units(one, count)
    strongest_of_other = strongest_units(other, count)
    shared = 0
    for unit in strongest_of_one & strongest_of_other:
        sign_of_one = np.sign(one[unit])
        sign_of_other = np.sign(other[unit])
        if sign_of_one == sign_of_other:
            shared += 1
    return shared


def chance_of_sharing_strongest(shared: int, size: int) -> float:
    """How likely it is that unrelated methods share so many of the strongest of `size` units, or more.

    P(X = x) ∝ C(k, x) · C(n − k, k − x): the hypergeometric distribution, in logarithms since it has long tails.
    """
    k = count_of_strongest_units(size)
    x = np.arange(k)
    missing = k - x
    not_shared = size - 2 * k + x + 1
    gained = 2 * np.log(missing)
    lost = np.log((x + 1) * not_shared)
    steps = gained - lost  # from x to x + 1
    sums = np.cumsum(steps)
    logs = np.concatenate([[0.0], sums])

    largest = logs.max()
    weights = np.exp(logs - largest)
    tail = weights[shared:].sum()
    whole = weights.sum()
    return float(tail / whole)


# -- correlations -------------------------------------------------------------------------------------------


def pearson_r(one: np.ndarray, other: np.ndarray) -> float | None:
    """r = Σ (a − ā)(b − b̄) / √(Σ (a − ā)² · Σ (b − b̄)²)."""
    if scores_are_constant(one) or scores_are_constant(other):
        return None
    a = relative_score_deviations(one)
    b = relative_score_deviations(other)
    squares_of_a = float(a @ a)
    squares_of_b = float(b @ b)
    length = math.sqrt(squares_of_a * squares_of_b)
    if not length:
        return None
    product = float(a @ b)
    r = product / length
    return max(-1.0, min(1.0, r))


def relative_score_deviations(scores: np.ndarray) -> np.ndarray:
    """Deviations from the mean, the largest ±1; of relative scores, since squares of tiny ones would vanish."""
    weights = relative_weights(scores)
    deviations = weights - weights.mean()
    return relative_weights(deviations)


def score_ranks(scores: np.ndarray) -> np.ndarray:
    """[u] 1 for the lowest score; equal scores share the mean of their ranks."""
    _, group, size = np.unique(scores, return_inverse=True, return_counts=True)
    last_ranks = np.cumsum(size)
    mean_ranks = last_ranks - (size - 1) / 2
    return mean_ranks[group]


def spearman_rho(one: np.ndarray, other: np.ndarray) -> float | None:
    """rho = r of the ranks."""
    ranks_of_one = score_ranks(one)
    ranks_of_other = score_ranks(other)
    return pearson_r(ranks_of_one, ranks_of_other)


def kendall_tau_b(one: np.ndarray, other: np.ndarray) -> float | None:
    """tau-b = (C − D) / √((P − T_a)(P − T_b)): pairs in the same and in opposite order, of P pairs without the T ties.

    Counted in n log n steps (Knight 1966): sorted by one, discordant pairs are the inversions of the other.
    """
    if scores_are_constant(one) or scores_are_constant(other):
        return None
    a = dense_score_ranks(one)
    b = dense_score_ranks(other)
    size = len(a)
    pairs = size * (size - 1) // 2
    tied_a = count_pairs_of_tied_scores(a)
    tied_b = count_pairs_of_tied_scores(b)
    both_ranks = a * size + b  # one number for each pair of ranks
    tied_both = count_pairs_of_tied_scores(both_ranks)

    by_both = np.lexsort((b, a))  # ties in `one` are in order and do not count
    discordant = count_inversions_of_scores(b[by_both])
    surplus = pairs - tied_a - tied_b + tied_both - 2 * discordant
    ordered_by_a = pairs - tied_a
    ordered_by_b = pairs - tied_b
    return surplus / math.sqrt(ordered_by_a * ordered_by_b)


def dense_score_ranks(scores: np.ndarray) -> np.ndarray:
    """[u] 0 for the lowest score, 1 for the next different one, and so on."""
    _, ranks = np.unique(scores, return_inverse=True)
    return ranks


def count_pairs_of_tied_scores(numbers: np.ndarray) -> int:
    """Pairs of equal numbers."""
    ranks = dense_score_ranks(numbers)
    size = np.bincount(ranks)
    pairs = size * (size - 1) // 2
    return int(pairs.sum())


def count_inversions_of_scores(places: np.ndarray) -> int:
    """Pairs i < j with places[i] > places[j], bit by bit: numbers that agree in all higher bits differ in this one."""
    count = 0
    largest = int(places.max())
    for bit in range(largest.bit_length()):
        high = places >> (bit + 1)
        order = np.argsort(high, kind="stable")
        groups = high[order]
        ones = (places[order] >> bit) & 1
        ones_before = np.cumsum(ones) - ones  # in all groups so far
        start = np.searchsorted(groups, groups)  # first place of each one's group
        ones_in_group = ones_before - ones_before[start]
        is_zero = ones == 0
        count += int(ones_in_group[is_zero].sum())
    return count


# -- who agrees with whom -----------------------------------------------------------------------------------


def least_tau_alike(size: int) -> float:
    """The tau-b from which two orders of `size` units are called alike.

    Chance gives unrelated orders a tau with σ² = 2(2n + 5) / 9n(n − 1) (Kendall 1938); 2.5 σ above 0 is reached once in
    160 pairs, and a few methods make many pairs. In a long text chance is small, and ALIKE is the bound.
    """
    if size < 2:
        return math.inf
    numerator = 2 * (2 * size + 5)
    denominator = 9 * size * (size - 1)
    deviation = math.sqrt(numerator / denominator)
    return max(ALIKE, RARE_DEVIATIONS * deviation)


def close_method_pairs(agreements: PairAgreements, size: int) -> list[MethodPair]:
    """The pairs that are alike in order, or share more of the strongest units than chance would."""
    close = []
    for pair, agreement in agreements.items():
        if methods_are_close(agreement, size):
            close.append(pair)
    return close


def methods_are_close(agreement: MethodAgreement, size: int) -> bool:
    """Whether two methods are alike in order, or share more of the strongest units than chance would."""
    if agreement.tau is None or agreement.shared is None:
        return False
    if agreement.tau >= least_tau_alike(size):
        return True
    chance = chance_of_sharing_strongest(agreement.shared, size)
    return chance <= RARE_PROBABILITY


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
