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
            random = batch.generator(index)
            design = self.choose_sets(len(units), random)
            designs.append(design)
            sets_of_text = sets_with_both_ends(design.keep)
            sets.append(sets_of_text)

        values = evaluate_sets(model, batch, sets)
        answers = []
        for design, asked in zip(designs, values, strict=True):
            answer = fit_shapley_values(design, asked)
            answers.append(answer)
        return answers

    def choose_sets(self, size: int, random: np.random.Generator) -> WeightedSets:
        """Which sets of `size` units to ask about, and what each weighs."""
        least = 4 * size
        samples = self.samples
        if samples is None:
            samples = 500 + least
        count_of_all_sets = 2**size - 2
        all_fit = count_of_all_sets <= samples
        if not all_fit and samples < least:
            raise InputError(
                f"{samples} samples are too few to tell {size} units apart: "
                f"use kernel_shap(samples={least}) or more, or larger units."
            )

        parts = [np.zeros((0, size), bool)]
        weights = [np.zeros(0)]
        weight_of_size = weights_of_sizes(size)
        left = samples
        largest_half = size // 2
        for small in range(1, largest_half + 1):
            sizes = sorted({small, size - small})
            count = comb(size, small) * len(sizes)
            weight = sum(weight_of_size[k] for k in sizes)
            weight_left = sum(weight_of_size.values())
            expected = left * weight / weight_left
            # the first sizes are what tells units apart, so they are taken in any case
            may_be_drawn = small > 1 and not all_fit
            drawing_is_cheaper = may_be_drawn and expected < count
            if count > left or drawing_is_cheaper:
                break
            for k in sizes:
                sets = all_sets_of(size, k)
                parts.append(sets)
                weight_of_set = weight_of_size.pop(k) / comb(size, k)
                weights_of_sets = np.full(len(sets), weight_of_set)
                weights.append(weights_of_sets)
            left -= count

        rows_per_draw = 1
        if self.paired:
            rows_per_draw = 2
        drawn = np.zeros((0, size), bool)
        if weight_of_size and left >= rows_per_draw:
            drawn = draw_sets(random, size, weight_of_size, limit=left, rows_per_draw=rows_per_draw)
            parts.append(drawn)
            weight_left = sum(weight_of_size.values())
            weight_of_draw = weight_left / max(1, len(drawn))
            weights_of_draws = np.full(len(drawn), weight_of_draw)
            weights.append(weights_of_draws)
        return WeightedSets(
            keep=np.concatenate(parts),
            weight=np.concatenate(weights),
            drawn=len(drawn),
            rows_per_draw=rows_per_draw,
        )


def weights_of_sizes(size: int) -> dict[int, float]:
    """What all sets of k of `size` units weigh together, by k."""
    weights = {}
    for k in range(1, size):
        units_in_or_out = k * (size - k)
        weights[k] = (size - 1) / units_in_or_out
    return weights


def sets_with_both_ends(keep: np.ndarray) -> np.ndarray:
    """[n+2 u] the sets, then nothing, then everything."""
    size = keep.shape[1]
    nothing = np.zeros((1, size), bool)
    everything = np.ones((1, size), bool)
    return np.concatenate([keep, nothing, everything])


def all_sets_of(size: int, count: int) -> np.ndarray:
    """[n u] every set of `count` of `size` units."""
    sets = list(combinations(range(size), count))
    numbers = np.array(sets, dtype=np.int64)
    members = numbers.reshape(-1, count)
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
        packed = np.packbits(rows, axis=1)
        different = np.unique(packed, axis=0)
        rows_left = limit - len(different)
        count = rows_left // rows_per_draw
        if count <= 0:
            break

        size_of_draw = random.choice(sizes, size=count, p=chances)
        noise = random.random((count, size))
        order = noise.argsort(1)
        place_in_order = order.argsort(1)
        keep = place_in_order < size_of_draw[:, None]
        if rows_per_draw == 2:
            pairs = np.stack([keep, ~keep], axis=1)
            keep = pairs.reshape(-1, size)
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
    gain_of_set = asked.value[:-2] - nothing
    equal_shares = share_kept * gain
    rest = gain_of_set - equal_shares  # [n] what equal shares do not account for
    weighted = centred * design.weight[:, None]
    normal_matrix = weighted.T @ centred
    inverse = np.linalg.pinv(normal_matrix, rcond=1e-10, hermitian=True)  # [u u]
    apart = inverse @ (weighted.T @ rest)  # sums to zero
    apart -= apart.mean()
    equal_share = gain / size
    scores = equal_share + apart

    error = np.zeros(size)
    degrees = 1
    if design.drawn:
        fit_of_sets = centred @ apart
        residual = rest - fit_of_sets
        first_drawn = len(kept) - design.drawn
        weighted = weighted[first_drawn:]
        centred = centred[first_drawn:]
        residual = residual[first_drawn:]
        draws = (-1, design.rows_per_draw, size)
        pulls = weighted * residual[:, None]
        pull_of_draw = pulls.reshape(draws).sum(1)
        influence = pull_of_draw @ inverse  # [draws u]
        # how much a draw fits itself
        fitted = (weighted @ inverse) * centred
        own = fitted.reshape(draws).sum((1, 2))
        own_limited = np.minimum(own, MOST_OWN)
        influence /= 1 - own_limited[:, None]
        variance = len(influence) * influence.var(0, ddof=1)
        error = np.sqrt(variance)
        # what the fit leaves of the draws; sets that are taken whole have no part in it
        left_over = 1 - own
        degrees = int(left_over.sum())
    return answer_with_margin(scores, error, degrees, diagnostics=facts, cost=asked.cost)
