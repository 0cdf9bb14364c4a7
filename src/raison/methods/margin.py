"""Margins of error: half the width of a score's 95 % interval, from its standard error and Student's t distribution.

A standard error that was itself estimated from a few draws is often too small. Two standard errors then cover less than
95 %; quantiles of Student's t are larger just so much that they cover 95 % where the draws are normal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from raison.methods.base import Answer

__all__ = ["LEVEL", "answer_with_margin", "margin_of_95_percent", "t_quantile"]

LEVEL = 0.95  # of the interval: its name in `parts` is margin_95
PRECISION = 1e-12  # relative, of a quantile


def margin_of_95_percent(standard_error: np.ndarray, degrees: int) -> np.ndarray:
    """Half the width of the 95 % interval around each score: standard error × t quantile.

    `degrees`: degrees of freedom of the standard error, at least 1. For a mean of n independent draws they are n − 1,
    for a regression the number of draws less that of the fitted coefficients.
    """
    return standard_error * t_quantile((1 + LEVEL) / 2, max(1, degrees))


def answer_with_margin(
    scores: np.ndarray,
    error: np.ndarray,
    degrees: int,
    *,
    diagnostics: dict[str, object],
    cost: Mapping[str, float],
) -> Answer:
    """Scores with the standard error and the 95 % margin of each, and the largest error as a diagnostic."""
    largest = float(error.max(initial=0.0))
    return Answer(
        scores,
        parts={"standard_error": error, "margin_95": margin_of_95_percent(error, degrees)},
        diagnostics={**diagnostics, "sampling_error": largest},
        cost=cost,
    )


@lru_cache(maxsize=256)
def t_quantile(probability: float, degrees: int) -> float:
    """The quantile of Student's t distribution for a probability from 0.5 to below 1, by bisection.

    It is that of scipy.stats.t.ppf, to ten digits; raison does without scipy.
    """
    inside = 2 * probability - 1  # P(|T| ≤ t)
    low, high = 0.0, 1.0
    while t_inside(high, degrees) < inside:
        low, high = high, 2 * high

    while high - low > PRECISION * high:
        middle = (low + high) / 2
        if t_inside(middle, degrees) < inside:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def t_inside(t: float, degrees: int) -> float:
    """P(|T| ≤ t) for Student's t with ν = `degrees`, a whole number (Abramowitz & Stegun 1964, 26.7.3 and 26.7.4).

    With θ = arctan(t / √ν), odd ν: 2/π (θ + sin θ (cos θ + 2/3 cos³ θ + … + (2·4⋯(ν−3)) / (1·3⋯(ν−2)) cos^(ν−2) θ)),
    where ν = 1 has θ alone; even ν: sin θ (1 + 1/2 cos² θ + … + (1·3⋯(ν−3)) / (2·4⋯(ν−2)) cos^(ν−2) θ).
    """
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2 == 1
    if degrees == 1:
        return 2 / math.pi * angle

    # each term is the one before times cos² θ and a ratio: 2/3, 4/5, … or 1/2, 3/4, …
    numerators = np.arange(2 if odd else 1, degrees - 2, 2)
    ratios = cosine**2 * numerators / (numerators + 1)
    series = 1 + float(np.cumprod(ratios).sum())
    if odd:
        return 2 / math.pi * (angle + sine * cosine * series)
    return sine * series
