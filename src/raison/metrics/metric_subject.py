"""What a metric is asked about: one explanation, and what is known about its text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from raison.core.errors import InputError
from raison.core.records import Encoding, Example, Explanation, Units
from raison.models.protocol import Model

__all__ = ["Subject", "gold_share", "gold_units"]


@dataclass(frozen=True)
class Subject:
    """One explanation, and what is known about its text."""

    explanation: Explanation
    example: Example | None = None  # with the gold rationale and the gold label
    model: Model | None = None
    removal: str | None = None  # None: the model's default
    seed: int = 0
    gold_share: float | None = (
        None  # mean share of gold units in the data set: how long a rationale is there
    )
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
