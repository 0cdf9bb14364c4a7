"""The difference of two methods: where one gives more than another, each score relative to its method's strongest.

d_u = a_u / max|a| − b_u / max|b|, of sizes where only one of the two has negative scores (P4, Figures 6 to 13). A
difference of 1 is full colour, so two methods that say almost the same leave the text bare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.records import Explanation
from raison.show.agreement_measures import comparable_scores
from raison.show.agreement_sentences import method_titles
from raison.show.colour_scale import SILENT_WEIGHT, has_negative_scores, relative_weights

__all__ = [
    "NO_DIFFERENCE",
    "MethodDifference",
    "difference_of_methods",
    "differences_from_first_method",
]

NO_DIFFERENCE = "The two methods say the same."


@dataclass(frozen=True)
class MethodDifference:
    """Two methods about the same units."""

    explanation: Explanation  # of the first, for its text
    first: str  # what the methods are called
    second: str
    one: np.ndarray  # [u] in -1..1
    other: np.ndarray  # [u] likewise
    by_size: bool  # without signs, since only one of them has any

    @property
    def values(self) -> np.ndarray:
        """[u] in -2..2, above 0 where the first gives more."""
        values: np.ndarray = self.one - self.other
        return values

    @property
    def weights(self) -> np.ndarray:
        """[u] in -1..1: how strong the colours are."""
        weights: np.ndarray = np.clip(self.values, -1, 1)
        return weights

    @property
    def has_negative(self) -> bool:
        return has_negative_scores(self.one) or has_negative_scores(self.other)

    def strongest(self, most: int, side: int = 0) -> list[int]:
        """The units with the largest differences that can be seen; only those of a side, 1 or -1, if one is given."""
        sizes = np.abs(self.values)
        if side:
            sizes = self.values * side
        largest = np.argsort(-sizes, kind="stable")[:most]
        return [int(unit) for unit in largest if sizes[unit] >= SILENT_WEIGHT]

    def meaning(self) -> str:
        """What the numbers are."""
        relative = "scores divided by the largest of their method"
        if self.by_size:
            return f"{relative}, without signs"
        if self.has_negative:
            return f"{relative}, with their signs"
        return relative


def difference_of_methods(
    one: Explanation, other: Explanation, names: tuple[str, str]
) -> MethodDifference:
    """What the first of two methods gives more than the second."""
    first, second = names
    scores, other_scores = comparable_scores(one.scores, other.scores)
    one_has_signs = has_negative_scores(one.scores)
    other_has_signs = has_negative_scores(other.scores)
    return MethodDifference(
        explanation=one,
        first=first,
        second=second,
        one=relative_weights(scores),
        other=relative_weights(other_scores),
        by_size=one_has_signs != other_has_signs,
    )


def differences_from_first_method(explanations: Sequence[Explanation]) -> list[MethodDifference]:
    """The first method minus each of the others."""
    first, *others = explanations
    first_name, *names = method_titles(explanations)
    differences = []
    for other, name in zip(others, names, strict=True):
        differences.append(difference_of_methods(first, other, (first_name, name)))
    return differences
