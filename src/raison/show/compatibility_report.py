"""What is shown of how a model behaves on parts (subsets) of its context: the parts of a report that are read.

The protocols say what is read of a `Compatibility` record of raison.studies; nothing here imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = [
    "CompatibilityReport",
    "MarginalisedToken",
    "RepeatedAtPosition",
    "SubsetPerplexity",
    "subset_size_in_words",
]


class SubsetPerplexity(Protocol):
    """Perplexity where so many tokens are kept."""

    @property
    def size(self) -> int | None: ...
    @property
    def perplexity(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def count(self) -> int: ...


class RepeatedAtPosition(Protocol):
    """Mean probability of a word after itself, where it stands at one position."""

    @property
    def position(self) -> int: ...
    @property
    def alone(self) -> float: ...
    @property
    def beside_another(self) -> float | None: ...


class MarginalisedToken(Protocol):
    """The probability of one token with another left out, against the truth."""

    @property
    def kind(self) -> str: ...
    @property
    def true(self) -> float: ...
    @property
    def masked(self) -> float: ...
    @property
    def covered(self) -> float: ...


class CompatibilityReport(Protocol):
    """How a model behaves on parts of its context."""

    @property
    def verdict(self) -> str: ...
    @property
    def trusted(self) -> bool: ...
    @property
    def guess(self) -> float: ...
    @property
    def subsets(self) -> Sequence[SubsetPerplexity]: ...
    @property
    def repetition(self) -> Sequence[RepeatedAtPosition]: ...
    @property
    def truth(self) -> Sequence[MarginalisedToken]: ...


def subset_size_in_words(subset: SubsetPerplexity) -> str:
    """How many tokens are kept, as it is printed."""
    return "all" if subset.size is None else str(subset.size)
