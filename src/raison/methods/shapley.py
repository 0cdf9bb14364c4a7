"""Shapley values: what a unit adds on average over all the orders in which units could arrive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np

from raison.core.errors import InputError
from raison.core.spec import whole
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.margin import margin
from raison.methods.perturbation import Asked, ask
from raison.models.protocol import Model

__all__ = ["KernelShap", "ShapleySampling"]

CELLS = 1 << 24  # sets × units that are asked about together


@dataclass
class Design:
    """The sets [n u] that kernel_shap asks about, and what each weighs; everything and nothing come besides."""

    keep: np.ndarray  # [n u]
    weight: np.ndarray  # [n]
    drawn: int = 0  # the last so many rows were drawn, the rest is complete
    each: int = 2  # rows of one draw: a set and its complement, or a set


@method("kernel_shap")
@dataclass(frozen=True)
class KernelShap(Method):
    """Shapley values as the best additive account of the value of random sets of units.

    φ = argmin Σ_z w(z) (f(z) − f(∅) − Σ_u φ_u z_u)² subject to Σ_u φ_u = f(x) − f(∅), with
    w(z) = (M − 1) / (C(M, |z|) · |z| · (M − |z|)) for M units (Lundberg & Lee 2017). ∅ keeps what may not be removed.
    The constraint holds exactly: only the part of φ that sums to zero is fitted. Where all 2^M − 2 sets fit into
    `samples` they are all asked, and the result is exact. Else the sizes next to nothing and everything are taken whole
    as long as drawing would ask every set of them at least once, and the rest is drawn by weight, each set together
    with its complement (Covert & Lee 2021). `standard_error` is the sampling error of that draw, by linearisation, and
    `margin_95` half the width of the 95 % interval around each score, by Student's t with the degrees of freedom that
    the draws have left when φ is fitted.
    """

    samples: int | None = None  # sets asked besides everything and nothing; None: 500 and 4 for each unit
    paired: bool = True  # draw sets together with their complements

    paper = "Lundberg & Lee 2017"
    axis = "unit"
    needs = frozenset({"score"})

    def __post_init__(self) -> None:
        if self.samples is not None:
            whole("samples", self.samples, 2)
        if not isinstance(self.paired, bool):
            raise InputError(f"paired is True or False, not {self.paired}.")

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        designs = [self.design(len(units), batch.generator(i)) for i, units in enumerate(batch.units)]
        chosen = [with_ends(design.keep) for design in designs]
        return [fitted(design, asked) for design, asked in zip(designs, ask(model, batch, chosen), strict=True)]

    def design(self, size: int, random: np.random.Generator) -> Design:
        """Which sets of `size` units to ask about."""
        samples = 500 + 4 * size if self.samples is None else self.samples
        if 2**size - 2 > samples and samples < 4 * size:
            raise InputError(
                f"{samples} samples are too few to tell {size} units apart: "
                f"use kernel_shap(samples={4 * size}) or more, or larger units."
            )
        share = {k: (size - 1) / (k * (size - k)) for k in range(1, size)}  # weight of all sets of a size
        parts = [np.zeros((0, size), bool)]
        weights = [np.zeros(0)]
        left = samples
        for k in range(1, size // 2 + 1):
            both = {k, size - k}
            count = comb(size, k) * len(both)
            expected = left * sum(share[j] for j in both) / sum(share.values())
            # the first sizes are what tells units apart, so they are taken in any case
            if count > left or (k > 1 and expected < count and 2**size - 2 > samples):
                break
            for j in sorted(both):
                parts.append(all_of(size, j))
                weights.append(np.full(comb(size, j), share.pop(j) / comb(size, j)))
            left -= count
        each = 2 if self.paired else 1
        rows = np.zeros((0, size), bool)
        if share and left >= each:
            rows = drawn(random, size, share, left, each)
            parts.append(rows)
            weights.append(np.full(len(rows), sum(share.values()) / max(1, len(rows))))
        return Design(np.concatenate(parts), np.concatenate(weights), len(rows), each)


def with_ends(keep: np.ndarray) -> np.ndarray:
    """[n+2 u] the sets, then nothing, then everything."""
    size = keep.shape[1]
    return np.concatenate([keep, np.zeros((1, size), bool), np.ones((1, size), bool)])


def all_of(size: int, count: int) -> np.ndarray:
    """[n u] every set of `count` of `size` units."""
    members = np.array(list(combinations(range(size), count)), dtype=np.int64).reshape(-1, count)
    keep = np.zeros((len(members), size), bool)
    np.put_along_axis(keep, members, True, axis=1)
    return keep


def drawn(
    random: np.random.Generator, size: int, share: dict[int, float], limit: int, each: int, rounds: int = 6
) -> np.ndarray:
    """[n u] sets of random sizes by weight, each followed by its complement if `each` is 2; about `limit` different."""
    sizes = np.array(list(share))
    weights = np.array(list(share.values()))
    rows = np.zeros((0, size), bool)
    for _ in range(rounds):  # a set may come up again: what that saves is drawn anew
        count = (limit - len(np.unique(np.packbits(rows, axis=1), axis=0))) // each
        if count <= 0:
            break
        picked = random.choice(sizes, size=count, p=weights / weights.sum())
        keep = random.random((count, size)).argsort(1).argsort(1) < picked[:, None]
        new = np.stack([keep, ~keep], axis=1).reshape(-1, size) if each == 2 else keep
        rows = np.concatenate([rows, new])
    return rows


def fitted(design: Design, asked: Asked) -> Answer:
    """The weighted least squares solution that adds up, and its sampling error."""
    *_, nothing, everything = asked.value
    size = design.keep.shape[1]
    gain = everything - nothing
    facts = {"value": everything, "empty": nothing, "evaluations": asked.evaluations}
    if size == 0:
        return Answer(np.zeros(0), diagnostics=facts, cost=asked.cost)
    kept = design.keep.astype(float)
    centred = kept - kept.mean(1, keepdims=True)  # [n u] what tells units apart; rows sum to zero
    rest = asked.value[:-2] - nothing - kept.mean(1) * gain  # [n] what equal shares do not account for
    weighted = centred * design.weight[:, None]
    inverse = np.linalg.pinv(weighted.T @ centred, rcond=1e-10, hermitian=True)  # [u u]
    apart = inverse @ (weighted.T @ rest)  # sums to zero
    apart -= apart.mean()
    scores = gain / size + apart
    error, degrees = np.zeros(size), 1
    if design.drawn:
        last = slice(len(kept) - design.drawn, None)
        split = (-1, design.each, size)
        influence = (weighted[last] * (rest - centred @ apart)[last, None]).reshape(split).sum(1) @ inverse  # [draws u]
        own = ((weighted[last] @ inverse) * centred[last]).reshape(split).sum((1, 2))  # how much a draw fits itself
        influence /= 1 - np.minimum(own, 0.9)[:, None]
        error = np.sqrt(len(influence) * influence.var(0, ddof=1))
        degrees = int((1 - own).sum())  # what the fit leaves of the draws; sets that are taken whole have no part in it
    return sampled(scores, error, degrees, facts, asked)


def sampled(scores: np.ndarray, error: np.ndarray, degrees: int, facts: dict, asked: Asked) -> Answer:
    """Scores with the standard error and the 95 % margin of each, and the largest error as a diagnostic."""
    facts["sampling_error"] = float(error.max(initial=0.0))
    parts = {"standard_error": error, "margin_95": margin(error, degrees)}
    return Answer(scores, parts=parts, diagnostics=facts, cost=asked.cost)


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
        whole("permutations", self.permutations, 2)

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        walks = [self.walk(len(units), batch.generator(i)) for i, units in enumerate(batch.units)]
        if max((walk.cells for walk in walks), default=0) <= CELLS:
            answers = ask(model, batch, [walk.sets() for walk in walks])
        else:  # one text after the other, some of its orders at a time: memory does not grow with their number
            answers = [in_parts(model, batch, number, walk) for number, walk in enumerate(walks)]
        return [walk.answer(asked) for walk, asked in zip(walks, answers, strict=True)]

    def walk(self, size: int, random: np.random.Generator) -> Walk:
        """Random orders, or all sets where they are fewer."""
        if 2**size - 2 <= 2 * self.permutations * max(0, size - 1):
            return Walk(size)
        return Walk(size, random.random((self.permutations, size)).argsort(1))


def in_parts(model: Model, batch: Batch, number: int, walk: Walk) -> Asked:
    """What all sets of one text are worth, asked in parts."""
    alone = replace(
        batch, encodings=[batch.encodings[number]], targets=[batch.targets[number]], units=[batch.units[number]],
        whole=(), predicted=(),
    )  # fmt: skip
    found = [ask(model, alone, [keep])[0] for keep in walk.parts()]
    cost = {key: sum(each.cost[key] for each in found) for key in found[0].cost}
    return Asked(np.concatenate([each.value for each in found]), sum(each.evaluations for each in found), cost)


def every_set(size: int) -> np.ndarray:
    """[n u] all sets, nothing first, everything last."""
    return (np.arange(2**size)[:, None] >> np.arange(size)) % 2 == 1


@dataclass
class Walk:
    """Sets that are asked about, and what follows from their values."""

    size: int
    ranks: np.ndarray | None = None  # [p u] when each unit arrives; None where all sets are asked

    @property
    def cells(self) -> int:
        return 0 if self.ranks is None else 2 * len(self.ranks) * (self.size + 1) * self.size

    def sets(self, first: int = 0, last: int | None = None) -> np.ndarray:
        """[n u] of each order its beginnings, then those of its reverse; or all sets."""
        if self.ranks is None:
            return every_set(self.size)
        forth = self.ranks[first:last, None, :] < np.arange(self.size + 1)[:, None]  # [p k u] the first k units
        return np.stack([forth, ~forth[:, ::-1]], axis=1).reshape(-1, self.size)

    def parts(self) -> Iterator[np.ndarray]:
        """The sets of a few orders after the others."""
        if self.ranks is None:
            yield self.sets()
            return
        each = max(1, CELLS * len(self.ranks) // self.cells)
        for first in range(0, len(self.ranks), each):
            yield self.sets(first, first + each)

    def answer(self, asked: Asked) -> Answer:
        facts = {"value": asked.value[-1], "empty": asked.value[0], "evaluations": asked.evaluations}
        if self.ranks is None:
            scores = exactly(self.sets(), asked.value)
            return sampled(scores, np.zeros(len(scores)), 1, facts, asked)
        pairs, size = self.ranks.shape
        facts["value"] = asked.value[size]
        value = asked.value.reshape(pairs, 2, size + 1)
        gain = np.diff(value, axis=-1)  # [p 2 k] what the unit that arrives as the k-th adds
        forth = np.take_along_axis(gain[:, 0], self.ranks, axis=1)
        back = np.take_along_axis(gain[:, 1], size - 1 - self.ranks, axis=1)
        both = (forth + back) / 2  # [p u]
        return sampled(both.mean(0), both.std(0, ddof=1) / np.sqrt(pairs), pairs - 1, facts, asked)


def exactly(keep: np.ndarray, value: np.ndarray) -> np.ndarray:
    """[u] Shapley values from the values of all sets."""
    size = keep.shape[1]
    # that exactly a certain set of k units is there when a certain unit arrives
    chance = np.array([1 / (size * comb(size - 1, k)) for k in range(size)] + [0.0])
    count = keep.sum(1)
    joined = np.where(count > 0, chance[count - 1], 0) * value  # as the set with the unit
    return keep.T @ joined - (~keep).T @ (chance[count] * value)
