"""KernelSHAP: Shapley values by a weighted regression on random sets of units."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from raison.core.errors import InputError
from raison.core.parameters import check_integer
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.kept_sets import SetValues, evaluate_sets
from raison.methods.margin import answer_with_margin
from raison.models.protocol import Model

__all__ = ["KernelShap"]

ROUNDS = 6  # of drawing: a set may come up again, and what that saves is drawn anew
MOST_OWN = 0.9  # share of its own residual that a draw may explain before its influence is cut


@dataclass
class WeightedSets:
    """The sets [n u] that are asked about, and what each weighs; everything and nothing come besides."""

    keep: np.ndarray  # [n u]
    weight: np.ndarray  # [n]
    drawn: int = 0  # the last so many rows were drawn, the rest is complete
    rows_per_draw: int = 2  # a set and its complement, or a set


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

    # sets asked besides everything and nothing; None: 500 and 4 for each unit
    samples: int | None = None
    paired: bool = True  # draw sets together with their complements

    paper = "Lundberg & Lee 2017"
    axis = "unit"
    needs = frozenset({"score"})

    def __post_init__(self) -> None:
        if self.samples is not None:
            check_integer("samples", self.samples, 2)
        if not isinstance(self.paired, bool):
            raise InputError(f"paired is True or False, not {self.paired}.")

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        designs = []
        sets = []
        for index, units in enumerate(batch.units):
            design = self.choose_sets(len(units), batch.generator(index))
            designs.append(design)
            sets.append(sets_with_both_ends(design.keep))

        answers = []
        for design, asked in zip(designs, evaluate_sets(model, batch, sets), strict=True):
            answers.append(fit_shapley_values(design, asked))
        return answers

    def choose_sets(self, size: int, random: np.random.Generator) -> WeightedSets:
        """Which sets of `size` units to ask about, and what each weighs."""
        samples = self.samples
        if samples is None:
            samples = 500 + 4 * size
        all_fit = 2**size - 2 <= samples
        if not all_fit and samples < 4 * size:
            raise InputError(
                f"{samples} samples are too few to tell {size} units apart: "
                f"use kernel_shap(samples={4 * size}) or more, or larger units."
            )

        parts = [np.zeros((0, size), bool)]
        weights = [np.zeros(0)]
        # of all sets of a size
        weight_of_size = {k: (size - 1) / (k * (size - k)) for k in range(1, size)}
        left = samples
        for small in range(1, size // 2 + 1):
            sizes = sorted({small, size - small})
            count = comb(size, small) * len(sizes)
            weight = sum(weight_of_size[k] for k in sizes)
            expected = left * weight / sum(weight_of_size.values())
            # the first sizes are what tells units apart, so they are taken in any case
            drawing_is_cheaper = small > 1 and expected < count and not all_fit
            if count > left or drawing_is_cheaper:
                break
            for k in sizes:
                sets = all_sets_of(size, k)
                weight_of_set = weight_of_size.pop(k) / comb(size, k)
                parts.append(sets)
                weights.append(np.full(len(sets), weight_of_set))
            left -= count

        rows_per_draw = 1
        if self.paired:
            rows_per_draw = 2
        drawn = np.zeros((0, size), bool)
        if weight_of_size and left >= rows_per_draw:
            drawn = draw_sets(random, size, weight_of_size, limit=left, rows_per_draw=rows_per_draw)
            weight_of_draw = sum(weight_of_size.values()) / max(1, len(drawn))
            parts.append(drawn)
            weights.append(np.full(len(drawn), weight_of_draw))
        keep = np.concatenate(parts)
        return WeightedSets(keep, np.concatenate(weights), len(drawn), rows_per_draw)


def sets_with_both_ends(keep: np.ndarray) -> np.ndarray:
    """[n+2 u] the sets, then nothing, then everything."""
    size = keep.shape[1]
    nothing = np.zeros((1, size), bool)
    everything = np.ones((1, size), bool)
    return np.concatenate([keep, nothing, everything])


def all_sets_of(size: int, count: int) -> np.ndarray:
    """[n u] every set of `count` of `size` units."""
    sets = list(combinations(range(size), count))
    members = np.array(sets, dtype=np.int64).reshape(-1, count)
    keep = np.zeros((len(sets), size), bool)
    np.put_along_axis(keep, members, True, axis=1)
    return keep


def draw_sets(
    random: np.random.Generator,
    size: int,
    weight_of_size: dict[int, float],
    *,
    limit: int,
    rows_per_draw: int,
) -> np.ndarray:
    """[n u] sets of random sizes by weight, each followed by its complement if a draw has two rows.

    About `limit` of them are different.
    """
    sizes = np.array(list(weight_of_size))
    weights = np.array(list(weight_of_size.values()))
    chances = weights / weights.sum()
    rows = np.zeros((0, size), bool)
    for _ in range(ROUNDS):
        different = np.unique(np.packbits(rows, axis=1), axis=0)
        count = (limit - len(different)) // rows_per_draw
        if count <= 0:
            break
        size_of_draw = random.choice(sizes, size=count, p=chances)
        order = random.random((count, size)).argsort(1)
        place_in_order = order.argsort(1)
        keep = place_in_order < size_of_draw[:, None]
        if rows_per_draw == 2:
            keep = np.stack([keep, ~keep], axis=1).reshape(-1, size)
        rows = np.concatenate([rows, keep])
    return rows


def fit_shapley_values(design: WeightedSets, asked: SetValues) -> Answer:
    """The weighted least squares solution that adds up, and its sampling error."""
    *_, nothing, everything = asked.value
    size = design.keep.shape[1]
    gain = everything - nothing
    facts: dict[str, object] = {
        "value": everything,
        "empty": nothing,
        "evaluations": asked.evaluations,
    }
    if size == 0:
        return Answer(np.zeros(0), diagnostics=facts, cost=asked.cost)

    kept = design.keep.astype(float)
    share_kept = kept.mean(1)
    centred = kept - share_kept[:, None]  # [n u] what tells units apart; rows sum to zero
    # [n] what equal shares do not account for
    rest = asked.value[:-2] - nothing - share_kept * gain
    weighted = centred * design.weight[:, None]
    inverse = np.linalg.pinv(weighted.T @ centred, rcond=1e-10, hermitian=True)  # [u u]
    apart = inverse @ (weighted.T @ rest)  # sums to zero
    apart -= apart.mean()
    scores = gain / size + apart

    error = np.zeros(size)
    degrees = 1
    if design.drawn:
        residual = rest - centred @ apart
        first_drawn = len(kept) - design.drawn
        weighted, centred = weighted[first_drawn:], centred[first_drawn:]
        draws = (-1, design.rows_per_draw, size)
        # [draws u]
        pulls = weighted * residual[first_drawn:, None]
        influence = pulls.reshape(draws).sum(1) @ inverse
        # how much a draw fits itself
        fitted = (weighted @ inverse) * centred
        own = fitted.reshape(draws).sum((1, 2))
        influence /= 1 - np.minimum(own, MOST_OWN)[:, None]
        variance = len(influence) * influence.var(0, ddof=1)
        error = np.sqrt(variance)
        # what the fit leaves of the draws; sets that are taken whole have no part in it
        degrees = int((1 - own).sum())
    return answer_with_margin(scores, error, degrees, diagnostics=facts, cost=asked.cost)
