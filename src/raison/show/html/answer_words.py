"""What the page says about answers to its own questions: a text without some units, and each head of an answer.

The protocols say what is read of the records of raison.studies; nothing here imports them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from raison.show.head_selection import HeadSelection
from raison.show.text_formats import browser_number, clean_text, probability_in_percent

__all__ = ["HeadWords", "RemovalWords", "words_of_heads", "words_of_removal"]


class RemovalAnswer(Protocol):
    """What a model says of a target before and after some units are removed."""

    @property
    def before(self) -> float: ...
    @property
    def after(self) -> float: ...
    @property
    def same(self) -> bool: ...
    @property
    def instead(self) -> str: ...
    @property
    def probable(self) -> bool: ...


class HeadsAnswer(Protocol):
    """How much of an answer each head carries, and what kind it is, where that was measured."""

    @property
    def maps(self) -> Sequence[str]: ...
    @property
    def carried(self) -> Sequence[Sequence[float]]: ...
    @property
    def syntactic(self) -> Sequence[Sequence[float | None]] | None: ...
    @property
    def positional(self) -> Sequence[Sequence[float]] | None: ...
    @property
    def offsets(self) -> Sequence[Sequence[int]] | None: ...


@dataclass(frozen=True)
class RemovalWords:
    """How the value of the target moves, and what becomes of the prediction."""

    change: str
    verdict: str


@dataclass(frozen=True)
class HeadWords:
    """What is said about one head."""

    label: str
    kinds: str  # the first letters: S for syntactic, P for positional


# -- without some units -------------------------------------------------------------------------------------


def words_of_removal(answer: RemovalAnswer) -> RemovalWords:
    """What removing some units does."""
    before = value_before_or_after(answer, answer.before)
    after = value_before_or_after(answer, answer.after)
    verdict = "it predicts something else"
    if answer.same:
        verdict = "it predicts the same as before"
    elif answer.instead:
        verdict = f"it predicts “{clean_text(answer.instead)}” instead"
    return RemovalWords(change=f"{before} → {after}", verdict=verdict)


def value_before_or_after(answer: RemovalAnswer, value: float) -> str:
    """A probability in per cent, any other value with four digits."""
    if answer.probable:
        return probability_in_percent(value)
    return browser_number(value, digits=4)


# -- heads --------------------------------------------------------------------------------------------------


def words_of_heads(answer: HeadsAnswer) -> list[list[HeadWords]]:
    """[maps heads] what is said about each head."""
    rows = []
    for row, shares in enumerate(answer.carried):
        rows.append([words_of_head(answer, row, head) for head in range(len(shares))])
    return rows


def words_of_head(answer: HeadsAnswer, row: int, head: int) -> HeadWords:
    """Where a head is, how much it carries, and its kinds."""
    label = f"layer {answer.maps[row]}, head {head}: "
    label += f"{100 * answer.carried[row][head]:.1f} % of what all heads carry"
    kinds = kinds_of_head(answer, row, head)
    if kinds:
        label += f"; {' and '.join(kinds)}"
    if "positional" in kinds and answer.offsets is not None:
        label += f" (looks at offset {answer.offsets[row][head]})"
    letters = "".join(kind[0].upper() for kind in kinds)
    return HeadWords(label, letters)


def kinds_of_head(answer: HeadsAnswer, row: int, head: int) -> list[str]:
    """Whether a head is syntactic or positional, by the usual thresholds of `raison heads`."""
    kinds = []
    margin = None if answer.syntactic is None else answer.syntactic[row][head]
    share = None if answer.positional is None else answer.positional[row][head]
    if margin is not None and margin > HeadSelection.syntactic_margin:
        kinds.append("syntactic")
    if share is not None and share > HeadSelection.positional_share:
        kinds.append("positional")
    return kinds
