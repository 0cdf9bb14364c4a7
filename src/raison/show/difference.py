"""Where one method gives more than another: the difference of scores, each relative to its method's strongest.

d_u = a_u / max|a| − b_u / max|b|, of sizes where only one of the two has negative scores (P4, Figures 6 to 13). A
difference of 1 is full colour, so two methods that say almost the same leave the text bare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.records import Explanation
from raison.show import scale
from raison.show.agreement import comparable
from raison.show.consensus import titles

__all__ = ["Difference", "difference", "differences"]


@dataclass(frozen=True)
class Difference:
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
        return self.one - self.other

    @property
    def weights(self) -> np.ndarray:
        """[u] in -1..1: how strong the colours are."""
        return np.clip(self.values, -1, 1)

    @property
    def signed(self) -> bool:
        return scale.signed(self.one) or scale.signed(self.other)

    def strongest(self, most: int, side: int = 0) -> list[int]:
        """The units with the largest differences that can be seen; only those of a side, 1 or -1, if one is given."""
        sizes = self.values * side if side else np.abs(self.values)
        return [int(u) for u in np.argsort(-sizes, kind="stable")[:most] if sizes[u] >= scale.SILENT]

    def meaning(self) -> str:
        """What the numbers are."""
        signs = "without signs" if self.by_size else "with their signs" if self.signed else ""
        return "scores divided by the largest of their method" + (f", {signs}" if signs else "")


def difference(one: Explanation, other: Explanation, names: Sequence[str]) -> Difference:
    a, b = comparable(one.scores, other.scores)
    signs = scale.signed(one.scores) != scale.signed(other.scores)
    return Difference(one, names[0], names[1], scale.weights(a), scale.weights(b), signs)


def differences(explanations: Sequence[Explanation]) -> list[Difference]:
    """The first method minus each of the others."""
    names = titles(explanations)
    first, *others = explanations
    return [difference(first, each, (names[0], name)) for each, name in zip(others, names[1:], strict=True)]
