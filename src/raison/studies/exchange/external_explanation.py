"""`ExternalExplanation`, an explanation made elsewhere: what every format is read into, with checked scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raison.core.errors import InputError

__all__ = ["ExternalExplanation", "WrittenUnits", "checked_scores", "checked_selection"]


@dataclass(frozen=True)
class WrittenUnits:
    """The units of an explanation as raison wrote them."""

    spans: tuple[tuple[int, int, int], ...]  # segment, first character, end
    scores: np.ndarray  # [u]
    selected: np.ndarray | None  # [u]


@dataclass(frozen=True, kw_only=True)
class ExternalExplanation:
    """One explanation that was made elsewhere: tokens with scores, with a selection, or with both."""

    id: str  # of the example; empty: the file names none, and its order is that of the data
    method: str
    tokens: tuple[str, ...]
    scores: np.ndarray | None = None  # [k] of the tokens
    selected: np.ndarray | None = None  # [k]
    text: str | None = None
    target: Any = None
    about: int | None = None  # of two texts the tokens are those of this one alone
    written: WrittenUnits | None = None  # of a file that raison wrote

    def __post_init__(self) -> None:
        if self.scores is None and self.selected is None:
            raise InputError("neither scores nor a selection")

    @property
    def values(self) -> np.ndarray:
        """[k] the scores; without any, 1 for what is selected."""
        if self.scores is not None:
            return self.scores
        return np.asarray(self.selected, dtype=float)


def checked_scores(values: ArrayLike, count: int) -> np.ndarray:
    """[count] finite scores, one for each token."""
    scores = np.array(values, dtype=np.float64)
    if scores.shape != (count,):
        raise InputError(f"{count} tokens, but scores of the shape {list(scores.shape)}")
    if not np.isfinite(scores).all():
        raise InputError("a score that is not a number")
    return scores


def checked_selection(values: ArrayLike | None, count: int) -> np.ndarray | None:
    """[count] which tokens are selected, from zeros and ones; None where nothing is said of it."""
    if values is None:
        return None
    selected: np.ndarray = checked_scores(values, count) > 0
    return selected
