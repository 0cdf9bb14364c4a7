"""What a metric is asked about: one explanation with its text (`Subject`), its gold units, and kept sets of its
most important units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from raison.core.errors import InputError, Unsupported
from raison.core.records import Encoding, Example, Explanation, Units
from raison.models.protocol import InspectableModel, Model

__all__ = [
    "Subject",
    "curve_at_even_shares_of_units",
    "even_counts_of_units",
    "gold_share",
    "gold_units",
    "keep_most_important",
    "kept_sets_of_all_and_nothing",
    "model_and_method_of_subject",
    "rationale_sizes_of_subject",
    "remove_most_important",
    "set_of_all_units",
]


@dataclass(frozen=True)
class Subject:
    """One explanation, and what is known about its text."""

    explanation: Explanation
    example: Example | None = None  # with the gold rationale and the gold label
    model: Model | None = None
    removal: str | None = None  # None: the model's default
    seed: int = 0
    # mean share of gold units in the data set: how long a rationale is there
    gold_share: float | None = None
    # scores [u] of the same method for the same target by another model
    again: Callable[[Model], np.ndarray] | None = None
    cache: dict[Any, Any] = field(
        default_factory=dict
    )  # what metrics of one evaluation share, e.g. randomised models

    @property
    def units(self) -> Units:
        return self.explanation.units

    @property
    def scores(self) -> np.ndarray:
        return self.explanation.scores

    @cached_property
    def ranking(self) -> np.ndarray:
        """[u] units from the most important to the least; of equal ones the first in the text comes first.

        A rationale comes first in the order in which it was found, whatever its scores.
        """
        by_score = np.argsort(-self.scores, kind="stable")
        selected = self.explanation.selected
        if selected is None:
            return by_score

        in_order = self.explanation.order
        if in_order is None:
            in_order = np.array([], np.int64)
        candidates = np.concatenate([in_order, by_score])
        rationale = candidates[selected[candidates]]
        first, then = rationale.tolist(), by_score.tolist()
        ranking = dict.fromkeys([*first, *then])  # each unit once, at its first place
        return np.array(list(ranking), dtype=np.int64)

    @cached_property
    def gold(self) -> np.ndarray:
        """[u] units that share a character with the human rationale; none in a text where people marked nothing."""
        data_set_has_gold = self.gold_share is not None
        if self.example is None or not (self.example.gold or data_set_has_gold):
            raise InputError(
                "This text has no human rationale: evaluate plausibility on a data set that has some."
            )
        return gold_units(self.explanation.encoding, self.units, self.example)

    def best(self, count: int) -> np.ndarray:
        """[u] True for the `count` most important units."""
        mask = np.zeros(len(self.units), bool)
        mask[self.ranking[:count]] = True
        return mask

    def generator(self, salt: str) -> np.random.Generator:
        """Randomness that depends on the example (with its id), the target and the metric alone, not on the method."""
        content = self.explanation.encoding.content() + self.explanation.target.content()
        number = int(content[:16], 16)
        seeds = [self.seed, number, *salt.encode()]
        return np.random.default_rng(seeds)


def gold_units(encoding: Encoding, units: Units, example: Example) -> np.ndarray:
    """[u] units that share a character with a gold span of the same text."""
    marked = np.zeros(len(units), bool)
    for gold_span in example.gold:
        name = gold_span.segment or encoding.segments[0]
        if name not in encoding.segments:
            raise InputError(
                f"A gold span is about {name!r}, but this model calls the texts {', '.join(encoding.segments)}: use a "
                "model that is made for such data."
            )
        gold_segment = encoding.segments.index(name)

        for unit, (segment, start, end) in enumerate(units.spans):
            if segment != gold_segment:
                continue
            if start < gold_span.end and gold_span.start < end:
                marked[unit] = True
    return marked


def gold_share(encoding: Encoding, units: Units, example: Example) -> float | None:
    """Share of the units that people marked; None where they marked nothing, or all of it was cut off."""
    if not example.gold or not len(units):
        return None
    marked = gold_units(encoding, units, example)
    if not marked.any():
        return None
    return float(marked.mean())


def remove_most_important(subject: Subject, counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """[n u] kept units when the `count` most important ones are removed, for each count."""
    return ~keep_most_important(subject, counts)


def keep_most_important(subject: Subject, counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """[n u] kept units when only the `count` most important ones are there, for each count."""
    kept = [subject.best(int(count)) for count in counts]
    return np.stack(kept)


def set_of_all_units(subject: Subject) -> np.ndarray:
    """[1 u] the set of all units."""
    size = len(subject.units)
    return np.ones((1, size), bool)


def kept_sets_of_all_and_nothing(subject: Subject) -> np.ndarray:
    """[2 u] the whole text, and nothing of it."""
    everything = set_of_all_units(subject)
    return np.concatenate([everything, ~everything])


def rationale_sizes_of_subject(subject: Subject, shares: Sequence[float]) -> list[int]:
    """How many units the rationale has: as many as were selected, or a share of all, rounded up to at least one."""
    selected = subject.explanation.selected
    if selected is not None:
        return [int(selected.sum())]

    size = len(subject.units)
    sizes = []
    for share in shares:
        # 0.1 * 30 is 3.0000000000000004 in a computer
        count = math.ceil(share * size - 1e-9)
        sizes.append(max(1, count))
    return sizes


def even_counts_of_units(size: int, steps: int) -> np.ndarray:
    """[n] numbers of units from none to all, evenly spread, at most `steps` steps."""
    points = min(steps, size) + 1
    even_counts = np.linspace(0, size, points)
    counts = np.rint(even_counts).astype(int)
    return np.unique(counts)


def curve_at_even_shares_of_units(
    counts: np.ndarray, values: np.ndarray, points: int
) -> np.ndarray:
    """[points + 1] a curve over counts of units, read at even shares of the text: so texts can be averaged."""
    size = counts[-1]
    even_counts = np.linspace(0, size, points + 1)
    return np.asarray(np.interp(even_counts, counts, values))


def model_and_method_of_subject(
    subject: Subject, metric: str
) -> tuple[InspectableModel, Callable[[Model], np.ndarray]]:
    """The subject's model, whose weights can be changed, and its method: a model to the scores of the same target."""
    if subject.again is None:
        raise Unsupported(
            f"{metric} explains the text again, so it needs a method, not scores that were made elsewhere."
        )
    if not isinstance(subject.model, InspectableModel):
        name = "a function" if subject.model is None else subject.model.name
        raise Unsupported(f"{metric} changes weights, and {name} shows none.")
    return subject.model, subject.again
