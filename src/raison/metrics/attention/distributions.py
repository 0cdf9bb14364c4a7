"""Attention as a distribution over tokens: entropy, divergences, and what it is replaced by in experiments."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from raison.core.errors import InputError
from raison.core.parameters import check_integer

__all__ = [
    "jensen_shannon",
    "normalised_entropy",
    "permuted_attention",
    "total_variation",
    "uniform_attention",
]

Values = float | np.ndarray  # a number for one text, an array for many


def normalised_entropy(weights: ArrayLike, mask: ArrayLike | None = None) -> Values:
    """H̃ = −Σ p ln p / ln n over the n real tokens: 0 for one token with all weight, 1 for equal weights (P2, 3.2).

    Weights are made to add up to 1. A text of one token has 0. NaN where all weights are 0 (a gradient that vanished):
    no distribution exists there; leave it out and count it.
    """
    p, real = normalise_attention_weights(weights, mask)
    entropy = -x_log_x_for_entropy(p).sum(-1)
    n = np.maximum(real.sum(-1), 2)  # one token has entropy 0 anyway
    largest_entropy = np.log(n)
    share = np.clip(entropy / largest_entropy, 0.0, 1.0)
    return number_or_array(share + 0.0)  # no −0


def jensen_shannon(
    first: ArrayLike,
    second: ArrayLike,
    mask: ArrayLike | None = None,
) -> Values:
    """JSD = ½ KL(p‖m) + ½ KL(q‖m) with m = (p + q) / 2, in nats: 0 for equal ones, at most ln 2 (P2 App. C, P3 4.3).

    Finite where weights are 0, as those of sparsemax are. Weights are made to add up to 1; NaN where one has none.
    """
    p, _ = normalise_attention_weights(first, mask)
    q, _ = normalise_attention_weights(second, mask)
    p_tokens, q_tokens = p.shape[-1], q.shape[-1]
    if p_tokens != q_tokens:
        raise InputError(
            f"Two attentions must be over the same tokens, not {p_tokens} and {q_tokens}."
        )

    middle = (p + q) / 2
    of_p = half_divergence(p, middle)
    of_q = half_divergence(q, middle)
    divergence = np.clip(of_p + of_q, 0.0, np.log(2.0))
    return number_or_array(divergence + 0.0)  # no −0


def total_variation(first: ArrayLike, second: ArrayLike) -> Values:
    """TVD = ½ Σ_y |p(y) − q(y)| of two predictions [.., c], from 0 to 1.

    For two classes it is |p(1) − q(1)|; give both classes. (Released code of Wiegreffe & Pinter gives half of that.)
    """
    p = distribution_of_prediction(first)
    q = distribution_of_prediction(second)
    p_classes, q_classes = p.shape[-1], q.shape[-1]
    if p_classes != q_classes:
        raise InputError(
            f"Two predictions must be over the same classes, not {p_classes} and {q_classes}."
        )

    differences = np.abs(p - q)
    return number_or_array(differences.sum(-1) / 2)


def uniform_attention(mask: ArrayLike) -> np.ndarray:
    """[.., t] 1/n for each of the n real tokens, 0 elsewhere (P3 4.2)."""
    real = np.asarray(mask, bool)
    count = real.sum(-1, keepdims=True)
    weights: np.ndarray = real / np.maximum(count, 1)
    return weights


def permuted_attention(
    weights: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    seed: int = 0,
) -> np.ndarray:
    """[.., t] the same weights in random order among the real tokens of each row, 0 elsewhere (P3 4.2).

    The order depends on the seed and on the number of the row; average over ten seeds or more.
    """
    attention = np.asarray(weights, np.float64)
    real = real_tokens_of_attention(attention, mask)
    outside = attention[~real]
    if attention.ndim < 1 or outside.any():
        raise InputError(
            "Attention outside the mask would be lost: it must be 0 on what is no real token."
        )
    if not attention.size:
        return attention

    check_integer("seed", seed, 0)
    tokens = attention.shape[-1]
    rows = attention.reshape(-1, tokens)
    real_rows = real.reshape(rows.shape)
    permuted = np.zeros_like(rows)
    for number, row in enumerate(rows):
        places = np.flatnonzero(real_rows[number])
        generator = np.random.default_rng([seed, number])
        order = generator.permutation(places)
        permuted[number, places] = row[order]
    return permuted.reshape(attention.shape)


# -- helpers ------------------------------------------------------------------------------------------------


def normalise_attention_weights(
    weights: ArrayLike, mask: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """[.., t] weights that add up to 1 over real tokens (NaN where there is no weight at all), and the mask."""
    weights = np.asarray(weights, np.float64)
    if weights.ndim < 1:
        raise InputError("Weights are given per token: a list, not a single number.")
    real = real_tokens_of_attention(weights, mask)
    finite = np.isfinite(weights).all()
    negative = (weights < 0).any()
    if negative or not finite:
        raise InputError("Weights can't be negative, NaN or infinite.")

    weights = np.where(real, weights, 0.0)
    total = weights.sum(-1, keepdims=True)
    shares = np.full_like(weights, np.nan)
    np.divide(weights, total, out=shares, where=total > 0)
    return shares, real


def real_tokens_of_attention(weights: np.ndarray, mask: ArrayLike | None) -> np.ndarray:
    """[.., t] the mask in the shape of the weights; without a mask all tokens are real."""
    if mask is None:
        return np.ones(weights.shape, bool)
    real = np.asarray(mask, bool)
    try:
        return np.broadcast_to(real, weights.shape)
    except ValueError:
        raise InputError(
            f"A mask of the shape {real.shape} does not fit weights of {weights.shape}."
        ) from None


def distribution_of_prediction(prediction: ArrayLike) -> np.ndarray:
    """[.., c] a prediction as an array, checked."""
    p = np.asarray(prediction, np.float64)
    adds_up = p.ndim > 0 and np.allclose(p.sum(-1), 1, atol=1e-3)
    negative = (p < 0).any()
    if negative or not adds_up:
        raise InputError(
            "A prediction must give the probability of every class, which add up to 1."
        )
    return p


def x_log_x_for_entropy(p: np.ndarray) -> np.ndarray:
    """p ln p, with 0 ln 0 = 0."""
    positive = np.where(p == 0, 1.0, p)
    return p * np.log(positive)


def half_divergence(p: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """[..] ½ KL(p‖m), with 0 ln 0 = 0; NaN where the middle is."""
    both_positive = (p > 0) & (middle > 0)
    ratio = np.ones_like(middle)
    np.divide(p, middle, out=ratio, where=both_positive)
    terms = p * np.log(ratio)
    unknown = np.isnan(middle)
    terms = np.where(unknown, np.nan, terms)
    divergence: np.ndarray = 0.5 * terms.sum(-1)
    return divergence


def number_or_array(values: np.ndarray) -> Values:
    """A number for one text, an array for many."""
    return float(values) if values.ndim == 0 else values
