"""Shapley sampling: Shapley values as the mean over random orders of units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from raison.core.parameters import check_integer
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.kept_sets import SetValues, evaluate_sets
from raison.methods.margin import answer_with_margin
from raison.models.protocol import Model

__all__ = ["ShapleySampling"]

CELLS = 1 << 24  # sets × units that are asked about together


@method("shapley_sampling")
@dataclass(frozen=True)
class ShapleySampling(Method):
    """Shapley values as the mean of what a unit adds when units arrive in random orders.

    φ_u = mean over orders π of f(units before u in π, and u) − f(units before u in π) (Štrumbelj & Kononenko 2014).
    Every order is also walked backwards, which cancels much of the noise, and each order is asked about as a whole, so
    that every one of them, and the mean, adds up to f(x) − f(∅) exactly. `standard_error` is that of the mean over
    orders (each with its reverse), and `margin_95` half the width of the 95 % interval around each score, by Student's
    t with permutations − 1 degrees of freedom: an order and its reverse are one draw. Where asking about all 2^M sets
    costs no more than that, the result is exact.
    """

    permutations: int = 16  # random orders; each also backwards

    paper = "Štrumbelj & Kononenko 2014"
    axis = "unit"
    needs = frozenset({"score"})

    def __post_init__(self) -> None:
        check_integer("permutations", self.permutations, 2)

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        orders = []
        for index, units in enumerate(batch.units):
            orders.append(self.draw_orders(len(units), batch.generator(index)))
        most_cells = max((each.cells for each in orders), default=0)
        if most_cells <= CELLS:
            asked = evaluate_sets(model, batch, [each.sets() for each in orders])
        else:  # one text after the other, some of its orders at a time: memory does not grow with their number
            asked = []
            for index, each in enumerate(orders):
                asked.append(evaluate_orders_in_parts(model, batch, index, each))
        return [each.answer(values) for each, values in zip(orders, asked, strict=True)]

    def draw_orders(self, size: int, random: np.random.Generator) -> UnitOrders:
        """Random orders, or all sets where they are fewer."""
        count_of_all_sets = 2**size - 2
        if count_of_all_sets <= 2 * self.permutations * max(0, size - 1):
            return UnitOrders(size)
        ranks = random.random((self.permutations, size)).argsort(1)
        return UnitOrders(size, ranks)


def evaluate_orders_in_parts(
    model: Model, batch: Batch, index: int, orders: UnitOrders
) -> SetValues:
    """What all sets of one text are worth, asked in parts."""
    alone = replace(
        batch,
        encodings=[batch.encodings[index]],
        targets=[batch.targets[index]],
        units=[batch.units[index]],
        whole=(),
        predicted=(),
    )
    values: list[np.ndarray] = []
    evaluations = 0
    cost: dict[str, float] = {}
    for keep in orders.parts():
        (part,) = evaluate_sets(model, alone, [keep])
        values.append(part.value)
        evaluations += part.evaluations
        for name, spent in part.cost.items():
            cost[name] = cost.get(name, 0) + spent
    return SetValues(np.concatenate(values), evaluations, cost)


@dataclass
class UnitOrders:
    """Sets that are asked about, and what follows from their values."""

    size: int
    ranks: np.ndarray | None = None  # [p u] when each unit arrives; None where all sets are asked

    @property
    def cells(self) -> int:
        """Sets × units; all sets are few."""
        if self.ranks is None:
            return 0
        return 2 * len(self.ranks) * (self.size + 1) * self.size

    def sets(self) -> np.ndarray:
        """[n u] of each order its beginnings, then those of its reverse; or all sets."""
        return (
            every_set_of_units(self.size)
            if self.ranks is None
            else beginnings_of_orders(self.ranks)
        )

    def parts(self) -> Iterator[np.ndarray]:
        """The sets of a few orders after the others."""
        if self.ranks is None:
            yield every_set_of_units(self.size)
            return
        together = max(1, CELLS * len(self.ranks) // self.cells)
        for first in range(0, len(self.ranks), together):
            yield beginnings_of_orders(self.ranks[first : first + together])

    def answer(self, asked: SetValues) -> Answer:
        """Shapley values from what the sets are worth."""
        facts: dict[str, object] = {
            "value": asked.value[-1],
            "empty": asked.value[0],
            "evaluations": asked.evaluations,
        }
        if self.ranks is None:
            scores = exact_shapley_values(every_set_of_units(self.size), asked.value)
            no_error = np.zeros(len(scores))
            return answer_with_margin(scores, no_error, 1, diagnostics=facts, cost=asked.cost)

        pairs, size = self.ranks.shape
        facts["value"] = asked.value[size]
        value = asked.value.reshape(pairs, 2, size + 1)
        gain = np.diff(value, axis=-1)  # [p 2 k] what the unit that arrives as the k-th adds
        forward = np.take_along_axis(gain[:, 0], self.ranks, axis=1)
        backward = np.take_along_axis(gain[:, 1], size - 1 - self.ranks, axis=1)
        mean_of_pair = (forward + backward) / 2  # [p u]
        scores = mean_of_pair.mean(0)
        error = mean_of_pair.std(0, ddof=1) / np.sqrt(pairs)
        return answer_with_margin(scores, error, pairs - 1, diagnostics=facts, cost=asked.cost)


def beginnings_of_orders(ranks: np.ndarray) -> np.ndarray:
    """[n u] for each order of `ranks` [p u] the first 0, 1, … units, then the same of its reverse."""
    size = ranks.shape[1]
    counts = np.arange(size + 1)
    forward = ranks[:, None, :] < counts[:, None]  # [p k u] the first k units
    backward = ~forward[:, ::-1]
    return np.stack([forward, backward], axis=1).reshape(-1, size)


def every_set_of_units(size: int) -> np.ndarray:
    """[n u] all sets, nothing first, everything last."""
    bits = np.arange(2**size)[:, None] >> np.arange(size)
    return np.asarray(bits % 2 == 1)


def exact_shapley_values(keep: np.ndarray, value: np.ndarray) -> np.ndarray:
    """[u] Shapley values from the values of all sets."""
    size = keep.shape[1]
    # chance[k]: that exactly a certain set of k units is there when a certain unit arrives
    chance = np.zeros(size + 1)
    for k in range(size):
        chance[k] = 1 / (size * comb(size - 1, k))

    count = keep.sum(1)
    chance_before = np.where(count > 0, chance[count - 1], 0)
    with_unit = chance_before * value
    without_unit = chance[count] * value
    return np.asarray(keep.T @ with_unit - (~keep).T @ without_unit)
