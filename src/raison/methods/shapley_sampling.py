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
        most_cells = 0
        for index, units in enumerate(batch.units):
            random = batch.generator(index)
            orders_of_text = self.draw_orders(len(units), random)
            orders.append(orders_of_text)
            most_cells = max(most_cells, orders_of_text.cells)

        if most_cells <= CELLS:
            sets = [each.sets() for each in orders]
            asked = evaluate_sets(model, batch, sets)
        else:  # one text after the other, some of its orders at a time: memory does not grow with their number
            asked = []
            for index, each in enumerate(orders):
                values = evaluate_orders_in_parts(model, batch, index, each)
                asked.append(values)

        answers = []
        for each, values in zip(orders, asked, strict=True):
            answer = each.answer(values)
            answers.append(answer)
        return answers

    def draw_orders(self, size: int, random: np.random.Generator) -> UnitOrders:
        """Random orders, or all sets where they are fewer."""
        count_of_all_sets = 2**size - 2
        sets_of_an_order = max(0, size - 1)
        count_of_orders = 2 * self.permutations
        if count_of_all_sets <= count_of_orders * sets_of_an_order:
            return UnitOrders(size)
        noise = random.random((self.permutations, size))
        ranks = noise.argsort(1)
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
            before = cost.get(name, 0)
            cost[name] = before + spent
    all_values = np.concatenate(values)
    return SetValues(all_values, evaluations, cost)


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
        orders = 2 * len(self.ranks)
        sets = orders * (self.size + 1)
        return sets * self.size

    def sets(self) -> np.ndarray:
        """[n u] of each order its beginnings, then those of its reverse; or all sets."""
        if self.ranks is None:
            return every_set_of_units(self.size)
        return beginnings_of_orders(self.ranks)

    def parts(self) -> Iterator[np.ndarray]:
        """The sets of a few orders after the others."""
        if self.ranks is None:
            yield every_set_of_units(self.size)
            return
        count = len(self.ranks)
        that_fit = CELLS * count // self.cells
        together = max(1, that_fit)
        for first in range(0, count, together):
            end = first + together
            some_ranks = self.ranks[first:end]
            yield beginnings_of_orders(some_ranks)

    def answer(self, asked: SetValues) -> Answer:
        """Shapley values from what the sets are worth."""
        facts: dict[str, object] = {
            "value": asked.value[-1],
            "empty": asked.value[0],
            "evaluations": asked.evaluations,
        }
        if self.ranks is None:
            sets = every_set_of_units(self.size)
            scores = exact_shapley_values(sets, asked.value)
            no_error = np.zeros(len(scores))
            return answer_with_margin(scores, no_error, 1, diagnostics=facts, cost=asked.cost)

        pairs, size = self.ranks.shape
        facts["value"] = asked.value[size]
        value = asked.value.reshape(pairs, 2, size + 1)
        gain = np.diff(value, axis=-1)  # [p 2 k] what the unit that arrives as the k-th adds
        gain_forward = gain[:, 0]
        gain_backward = gain[:, 1]
        reverse_ranks = size - 1 - self.ranks
        forward = np.take_along_axis(gain_forward, self.ranks, axis=1)
        backward = np.take_along_axis(gain_backward, reverse_ranks, axis=1)
        mean_of_pair = (forward + backward) / 2  # [p u]
        scores = mean_of_pair.mean(0)
        deviation = mean_of_pair.std(0, ddof=1)
        error = deviation / np.sqrt(pairs)
        degrees = pairs - 1
        return answer_with_margin(scores, error, degrees, diagnostics=facts, cost=asked.cost)


def beginnings_of_orders(ranks: np.ndarray) -> np.ndarray:
    """[n u] for each order of `ranks` [p u] the first 0, 1, … units, then the same of its reverse."""
    size = ranks.shape[1]
    counts = np.arange(size + 1)
    forward = ranks[:, None, :] < counts[:, None]  # [p k u] the first k units
    longest_first = forward[:, ::-1]
    backward = ~longest_first
    both_ways = np.stack([forward, backward], axis=1)
    return both_ways.reshape(-1, size)


def every_set_of_units(size: int) -> np.ndarray:
    """[n u] all sets, nothing first, everything last."""
    numbers = np.arange(2**size)
    units = np.arange(size)
    bits = numbers[:, None] >> units
    is_one = bits % 2 == 1
    return np.asarray(is_one)


def exact_shapley_values(keep: np.ndarray, value: np.ndarray) -> np.ndarray:
    """[u] Shapley values from the values of all sets."""
    size = keep.shape[1]
    # chance[k]: that exactly a certain set of k units is there when a certain unit arrives
    chance = np.zeros(size + 1)
    for k in range(size):
        sets = comb(size - 1, k)
        chance[k] = 1 / (size * sets)

    count = keep.sum(1)
    chance_of_one_fewer = chance[count - 1]
    chance_before = np.where(count > 0, chance_of_one_fewer, 0)
    with_unit = chance_before * value
    without_unit = chance[count] * value
    gone = ~keep
    value_with = keep.T @ with_unit
    value_without = gone.T @ without_unit
    return np.asarray(value_with - value_without)
