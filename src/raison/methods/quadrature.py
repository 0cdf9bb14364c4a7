"""Quadrature: rules (midpoint, reference, adaptive) for the integral of a gradient over a path.

    I = ∫₀¹ G(α) dα,  G(α) ∈ Rᵗ,  Σ_t G_t(α) = F′(α)

A rule is a generator: it yields the places α that it wants to know about and is sent F [n] and G [n t] there; it
returns an `Integral`. So a rule is written for one path, and whoever drives it asks for many paths at once. No model
here: what is integrated may be anything.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

__all__ = ["Integral", "QuadratureRule", "adaptive_rule", "midpoint_rule", "reference_rule"]

# The adaptive rule; its constants were chosen on paths of SST-2 sentences and tried on others (benchmarks/paths.py)
FIRST = 7  # midpoints of the first round
MOST = 243  # places, the ends included
ROUNDS = 16  # of halving: no stretch is cut finer than 1 / (7 · 2¹⁶)
ORDER = 6  # places of the polynomial whose integral counts; with one fewer, it tells how far to trust it
# tolerances that the errors of all stretches may add up to: those that F tells, and others
KNOWN = 4.0
HIDDEN = 1.5
UNEQUAL = 2.0  # a stretch is halved where its error exceeds twice an equal share of what is allowed


@dataclass(frozen=True)
class Integral:
    """What a rule found; F(1) − F(0) is what the scores should add up to."""

    scores: np.ndarray  # [t] the integral
    start: float  # F(0)
    end: float  # F(1)
    places: int  # evaluations that enter the scores
    settled: bool = True  # the rule reached what it was asked for

    @property
    def error(self) -> float:
        """What is missing: F(1) − F(0) − Σ scores."""
        difference = self.end - self.start
        total = float(self.scores.sum())
        return difference - total

    @property
    def gap(self) -> float:
        """|error| relative to `scale`."""
        scale = self.scale
        if scale <= 0:
            return 0.0
        size = abs(self.error)
        return size / scale

    @property
    def scale(self) -> float:
        """|F(1) − F(0)|, but no less than a hundredth of Σ |scores|.

        Where the scores of both signs cancel, F(1) − F(0) is close to zero, and dividing by it would call any
        rounding a huge gap.
        """
        difference = abs(self.end - self.start)
        sizes = np.abs(self.scores)
        hundredth = 0.01 * float(sizes.sum())
        return max(difference, hundredth)


QuadratureRule = Generator[np.ndarray, tuple[np.ndarray, np.ndarray], Integral]


def midpoint_rule(steps: int) -> QuadratureRule:
    """N equal steps, each with its middle: α = (k + ½) / N. Exact for a constant G, even with one step."""
    values, slopes = yield midpoints_and_ends(steps)
    slopes_of_midpoints = slopes[1:-1]
    scores = slopes_of_midpoints.mean(0)
    return integral_of_path(scores, values, steps)


def midpoints_and_ends(steps: int) -> np.ndarray:
    """The middle of each of so many equal steps from 0 to 1, and both ends."""
    numbers = np.arange(steps)
    inside = (numbers + 0.5) / steps
    return np.concatenate([[0.0], inside, [1.0]])


def reference_rule(steps: int) -> QuadratureRule:
    """P0's released quadrature: N + 1 places with both ends, α = k / N, and their plain mean.

    That is neither the trapezoid rule (its ends count half) nor a convergent rule of higher order: its error falls
    with 1 / N only. It is here for comparisons.
    """
    numbers = np.arange(steps + 1)
    places = numbers / steps
    values, slopes = yield places
    scores = slopes.mean(0)
    return integral_of_path(scores, values, len(places))


def integral_of_path(scores: np.ndarray, values: np.ndarray, places: int) -> Integral:
    """The integral along a path at whose places, in their order, F is `values`."""
    start = float(values[0])
    end = float(values[-1])
    return Integral(scores, start, end, places)


def adaptive_rule(tolerance: float, rounding: float = 0.0, most: int = MOST) -> QuadratureRule:
    """Few places where G is flat, many where it is not: only the bad stretches are halved.

    The first round takes seven midpoints and both ends. Between two neighbours G is taken for the polynomial through
    the six nearest places. F is known at every place, so the error that the *sum* of the scores makes on each stretch
    is known, not estimated. F is blind to errors that cancel between tokens, so what the polynomial through five places
    would change in the scores is watched as well. It ends when

    - |F(1) − F(0) − Σ scores| ≤ tolerance · scale (see `Integral.scale`),
    - the known errors of all stretches, whatever their signs, add up to at most 4 tolerances of ‖scores‖₂, and
    - the changes of the scores between the two polynomials to at most 1.5;

    or when `most` places have been asked for, and then it says that it has not settled. `rounding` is the relative
    precision of F: below it there is nothing to learn.
    """
    places = midpoints_and_ends(FIRST)
    values, slopes = yield places
    for _ in range(ROUNDS):
        integral, badness = judge_integral(places, values, slopes, tolerance, rounding)
        room = most - len(places)
        something_to_halve = badness.any()  # not where G is not even finite
        if integral.settled or room <= 0 or not something_to_halve:
            return integral

        is_bad = badness > 0
        count = min(room, int(is_bad.sum()))
        worst_first = np.argsort(-badness, kind="stable")
        halved = worst_first[:count]
        left = places[halved]
        right = places[halved + 1]
        new_places = (left + right) / 2
        new_values, new_slopes = yield new_places

        all_places = np.concatenate([places, new_places])
        all_values = np.concatenate([values, new_values])
        all_slopes = np.concatenate([slopes, new_slopes])
        order = np.argsort(all_places, kind="stable")
        places = all_places[order]
        values = all_values[order]
        slopes = all_slopes[order]

    integral, _ = judge_integral(places, values, slopes, tolerance, rounding)
    return integral


def judge_integral(
    places: np.ndarray, values: np.ndarray, slopes: np.ndarray, tolerance: float, rounding: float
) -> tuple[Integral, np.ndarray]:
    """The integral as far as it is known, and which stretches between neighbours are to be halved (> 0: how badly)."""
    weights = quadrature_weights_of_stretches(places, ORDER)
    parts = weights @ slopes  # [n-1 t]
    scores = parts.sum(0)
    integral = integral_of_path(scores, values, len(places))

    # errors of all stretches [n-1]: of the sum, and those that cancel between tokens
    growth = np.diff(values)
    known = np.abs(growth - parts.sum(1))
    lower_weights = quadrature_weights_of_stretches(places, ORDER - 1)
    changes = parts - lower_weights @ slopes
    hidden = np.linalg.norm(changes, axis=1)

    largest_value = float(np.abs(values).max())
    noise = rounding * largest_value
    length = float(np.linalg.norm(scores))
    allowed = max(tolerance * length, noise)
    errors = known
    if allowed:
        # in shares of what is allowed for all stretches together
        known_shares = known / (KNOWN * allowed)
        hidden_shares = hidden / (HIDDEN * allowed)
        errors = np.maximum(known_shares, hidden_shares)

    allowed_gap = max(tolerance * integral.scale, noise)
    adds_up = abs(integral.error) <= allowed_gap
    small_errors = errors.sum() <= 1
    if small_errors and adds_up:
        nothing = np.zeros(len(errors))
        return integral, nothing

    open_integral = replace(integral, settled=False)
    share = UNEQUAL / len(errors)
    nothing_stands_out = errors.max() <= share  # false where errors are NaN
    if small_errors or nothing_stands_out:
        return open_integral, largest_half_of_quadrature_errors(errors if adds_up else known)
    return open_integral, np.where(errors > share, errors, 0.0)


def largest_half_of_quadrature_errors(errors: np.ndarray) -> np.ndarray:
    """The largest errors that together make half of the sum; zero in place of the others."""
    order = np.argsort(-errors, kind="stable")
    cumulated = np.cumsum(errors[order])
    half = errors.sum() / 2
    smaller = int(np.searchsorted(cumulated, half))
    chosen = order[: smaller + 1]
    largest = np.zeros(len(errors))
    largest[chosen] = errors[chosen]
    return largest


def quadrature_weights_of_stretches(places: np.ndarray, order: int) -> np.ndarray:
    """[n-1 n] weights: the integral between neighbours of the polynomial through the `order` nearest places."""
    size = len(places)
    stretches = size - 1
    left = places[:-1]
    right = places[1:]
    width = (right - left)[:, None]
    middle = (left + right) / 2
    # of the places around each stretch
    numbers = np.arange(stretches)
    nearest = numbers + 1 - order // 2
    first = np.clip(nearest, 0, size - order)
    steps = np.arange(order)
    window = first[:, None] + steps  # [n-1 order]

    # in units of the stretch, from its middle: -1/2 to 1/2
    from_middle = places[window] - middle[:, None]
    local = from_middle / width
    power = np.arange(order)
    is_even = power % 2 == 0
    even_moments = 0.5**power / (power + 1)
    moments = np.where(is_even, even_moments, 0.0)
    shape = (stretches, order, 1)
    right_sides = np.broadcast_to(moments[:, None], shape)
    powers_of_places = local[:, None, :] ** power[:, None]
    weights = np.linalg.solve(powers_of_places, right_sides)

    result = np.zeros((stretches, size))
    weights_of_window = weights[..., 0] * width
    np.put_along_axis(result, window, weights_of_window, axis=1)
    return result
