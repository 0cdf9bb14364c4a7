"""A line of numbers for each rationalizer, text by text, as recipes/rationalizers.py writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from raison.core.errors import InputError
from raison.core.json_record import JsonObject

__all__ = [
    "OWN",
    "OtherAnswers",
    "RationalizerLine",
    "TextCounts",
    "TokenCounts",
    "pooled_f1_of_rationalizer",
]

OWN = "own"  # the rationale that a model selects itself; of an ordinary model they are named by methods


@dataclass(frozen=True)
class TextCounts:
    """Counts of tokens in one text."""

    words: int = 0
    kept: int = 0
    marked: int = 0  # by people
    both: int = 0
    lost: int = 0  # marked, and cut off with the end of a long text
    second_words: int = 0  # of a pair
    second_kept: int = 0
    empty: bool = False  # nothing would be kept, where two tokens might

    @property
    def full(self) -> bool:
        """Everything is kept of several tokens."""
        return self.kept == self.words > 1

    def __add__(self, other: TextCounts) -> TextCounts:
        """The tokens of both."""
        return TextCounts(
            words=self.words + other.words,
            kept=self.kept + other.kept,
            marked=self.marked + other.marked,
            both=self.both + other.both,
            lost=self.lost + other.lost,
            second_words=self.second_words + other.second_words,
            second_kept=self.second_kept + other.second_kept,
            empty=self.empty and other.empty,
        )


@dataclass(frozen=True)
class TokenCounts:
    """Counts of tokens, text by text; what was not counted is empty."""

    words: Sequence[int] = ()
    kept: Sequence[int] = ()
    marked: Sequence[int] = ()
    both: Sequence[int] = ()
    cut: Sequence[int] = ()  # of a text that is too long
    lost: Sequence[int] = ()
    second_words: Sequence[int] = ()
    second_kept: Sequence[int] = ()
    empty: Sequence[int] = ()

    def of_text(self, number: int) -> TextCounts | None:
        """The counts of one text; None where it was not counted."""
        if number >= len(self.words):
            return None
        kept = self.kept[number]
        return TextCounts(
            words=self.words[number],
            kept=kept,
            marked=self.marked[number],
            both=self.both[number],
            lost=count_in_rationalizer_line(self.lost, number),
            second_words=count_in_rationalizer_line(self.second_words, number),
            second_kept=count_in_rationalizer_line(self.second_kept, number),
            empty=bool(self.empty[number]) if self.empty else kept == 0,
        )


def count_in_rationalizer_line(values: Sequence[int], number: int) -> int:
    """A count; 0 where nothing was counted."""
    return values[number] if number < len(values) else 0


@dataclass(frozen=True)
class OtherAnswers:
    """Text by text 1 where a model is right on a text that was changed, or reads all of it; empty where not asked.

    `of_mean` are the squared errors of always telling the mean of the training texts.
    """

    every_token: Sequence[float] = ()
    front: Sequence[float] = ()
    behind: Sequence[float] = ()
    words: Sequence[float] = ()
    of_mean: Sequence[float] = ()


@dataclass(frozen=True)
class RationalizerLine:
    """One seed of a kind of model, text by text: what it says, and how much it keeps of what people marked."""

    data: str
    name: str  # of its kind
    seed: int
    regression: bool
    left: int  # training texts that were left out, since they stand in other parts as well
    said: Sequence[float]  # 1 where it is right; of a regression its squared error
    picked: Mapping[str, TokenCounts] = field(default_factory=dict)  # by `OWN`, or by method
    more: OtherAnswers = OtherAnswers()

    def to_dict(self) -> JsonObject:
        """The line in JSON, without what is empty."""
        line = asdict(self)
        picked = {}
        for method, counts in line["picked"].items():
            picked[method] = rationalizer_lists_without_empty(counts)
        line["picked"] = picked
        line["more"] = rationalizer_lists_without_empty(line["more"])
        return line

    @classmethod
    def from_dict(cls, line: Mapping[str, Any]) -> RationalizerLine:
        """The line of `to_dict`."""
        written = [item.name for item in fields(cls)]
        if any(name not in line for name in written):
            raise InputError(
                f"The lines of {line['name']!r} are not what recipes/rationalizers.py writes: make them again."
            )
        values = {name: line[name] for name in written}
        picked = {}
        for method, counts in line["picked"].items():
            picked[method] = TokenCounts(**counts)
        values["picked"] = picked
        values["more"] = OtherAnswers(**line["more"])
        return cls(**values)


def rationalizer_lists_without_empty(
    lists: Mapping[str, Sequence[float]],
) -> dict[str, Sequence[float]]:
    filled = {}
    for name, values in lists.items():
        if len(values):
            filled[name] = values
    return filled


def pooled_f1_of_rationalizer(counts: TokenCounts) -> float:
    """Of all texts together in which people marked something."""
    both = np.array(counts.both)
    kept = np.array(counts.kept)
    marked = np.array(counts.marked)
    with_marks = marked > 0
    either = kept[with_marks].sum() + marked[with_marks].sum()
    return float(2 * both[with_marks].sum() / max(1, either))
