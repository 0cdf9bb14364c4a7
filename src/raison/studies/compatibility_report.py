"""The report of a compatibility check: what was measured on parts of a context, and the verdict in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.json_record import Record, json_field, records_field

__all__ = [
    "Compatibility",
    "CompatibilityVerdict",
    "MarginalisedToken",
    "RepeatedAtPosition",
    "SubsetPerplexity",
    "compatibility_verdict",
]

WORSE = 1.1  # ratio of perplexities from which on more context makes guesses worse
REPEATS = 0.05  # probability of a word after itself that is too much
APART = 0.1  # mean difference of probabilities, left out against marginalised out, that is too much


@dataclass(frozen=True, eq=False)
class SubsetPerplexity(Record):
    """Perplexity where so many tokens are kept, and the worst comparison with fewer of them in the same places."""

    size: int | None  # kept tokens; None: all
    perplexity: float
    low: float  # of the confidence interval
    high: float
    count: int  # places
    # kept tokens with which guesses were better by most; None: with no other number
    fewer: int | None = None
    ratio: float = 1.0  # of the perplexity to that with fewer tokens
    ratio_low: float = 1.0  # lower end of the ratio's interval


@dataclass(frozen=True, eq=False)
class RepeatedAtPosition(Record):
    """Mean probability of a word after itself, where it stands at one position."""

    position: int
    alone: float  # f(w | w)
    beside_another: float | None = None  # f(w | another word first, w); None at the first position


@dataclass(frozen=True, eq=False)
class MarginalisedToken(Record):
    """The probability of one token with another left out, against the truth."""

    kind: str  # likeliest | actual: which fourth token was asked about
    token: str
    true: float  # with the second token marginalised out
    masked: float  # with the second token left out
    covered: float  # share of the mass that was summed over


@dataclass(frozen=True, eq=False)
class Compatibility(Record):
    """How a model behaves on parts of its context."""

    model: str
    data: str
    subsets: tuple[SubsetPerplexity, ...] = records_field(
        "SubsetPerplexity"
    )  # by size, the whole context last
    guess: float = float("nan")  # perplexity of word frequencies alone, in the same places
    repetition: tuple[RepeatedAtPosition, ...] = records_field("RepeatedAtPosition", default=())
    truth: tuple[MarginalisedToken, ...] = records_field("MarginalisedToken", default=())
    verdict: str = ""
    trusted: bool = True
    settings: dict[str, int] = json_field()  # length, targets, blocks, truths, seed

    @property
    def full(self) -> float:
        """Perplexity with the whole context."""
        return self.subsets[-1].perplexity


@dataclass(frozen=True)
class CompatibilityVerdict:
    """Whether rationales can be taken at face value, in a sentence."""

    sentence: str
    trusted: bool


def compatibility_verdict(
    name: str,
    *,
    subsets: Sequence[SubsetPerplexity],
    guess: float,
    repetition: Sequence[RepeatedAtPosition] = (),
    truth: Sequence[MarginalisedToken] = (),
) -> CompatibilityVerdict:
    """Whether rationales can be taken at face value: no part is worse than none, further tokens help, words are not
    repeated, and leaving out is nearly marginalising out."""
    faults = [
        *verdict_on_token_frequencies(subsets, guess),
        *worse_with_more_context(subsets),
        *verdict_on_repeated_lone_words(repetition),
        *verdict_on_marginalised_truth(truth),
    ]
    if not faults:
        sentence = (
            f"Rationales of {name} can be taken at face value: it behaves on parts of a context."
        )
        return CompatibilityVerdict(sentence, trusted=True)
    *first_faults, last_fault = faults
    listed = last_fault
    if first_faults:
        listed = ", ".join(first_faults) + ", and " + last_fault
    sentence = (
        f"Rationales of {name} can't be taken at face value: {listed}. "
        f"`raison train compatibility -m {name}` teaches it to read parts of a context."
    )
    return CompatibilityVerdict(sentence, trusted=False)


def verdict_on_token_frequencies(subsets: Sequence[SubsetPerplexity], guess: float) -> list[str]:
    poorest = max(subsets, key=lambda row: row.low)
    if poorest.low <= guess:
        return []
    return [
        f"with {name_of_context_size(poorest.size)} its perplexity is {poorest.perplexity:,.0f}, "
        f"and {guess:,.0f} by the frequencies of tokens alone"
    ]


def worse_with_more_context(subsets: Sequence[SubsetPerplexity]) -> list[str]:
    sure = [row for row in subsets if row.ratio_low > 1]
    if not sure:
        return []
    worst = max(sure, key=lambda row: row.ratio)
    if worst.ratio <= WORSE:
        return []
    return [
        f"{name_of_context_size(worst.size)} make its guesses worse than {name_of_context_size(worst.fewer)} "
        f"(perplexity × {worst.ratio:.2f} in the same places)"
    ]


def verdict_on_repeated_lone_words(repetition: Sequence[RepeatedAtPosition]) -> list[str]:
    shares = []
    for row in repetition:
        shares.append(max(row.alone, row.beside_another or 0.0))
    highest = max(shares, default=0.0)
    if highest <= REPEATS:
        return []
    return [f"it repeats a word that stands alone with a probability of up to {highest:.2f}"]


def verdict_on_marginalised_truth(truth: Sequence[MarginalisedToken]) -> list[str]:
    distances = []
    for row in truth:
        if row.kind == "likeliest":
            distances.append(abs(row.true - row.masked))
    if not distances:
        return []
    distance = float(np.mean(distances))
    if distance <= APART:
        return []
    return [
        f"without a token it is {distance:.2f} away from what it says with that token marginalised out"
    ]


def name_of_context_size(size: int | None) -> str:
    """A number of kept tokens, as a sentence says it."""
    if size is None:
        return "all tokens"
    return "the last one alone" if size == 1 else f"{size} random tokens"
