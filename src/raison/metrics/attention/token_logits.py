"""What single tokens say: the decoder's answer to one hidden state, as if all attention were on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from raison.core.errors import InputError

__all__ = ["pooled_logits", "probability_from_token_logits", "token_logits"]


def token_logits(
    states: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike = 0.0,
) -> np.ndarray:
    """[.., t, c] W h_t + b: the logits of a linear decoder if all attention were on one token (P3 4.2).

    states [.., t, d], weight [c, d], bias [c]; with weight [d], the one logit of a binary decoder: [.., t].
    """
    h = np.asarray(states, np.float64)
    w = np.asarray(weight, np.float64)
    b = np.asarray(bias, np.float64)
    logits: np.ndarray = h @ w.T + b
    return logits


def pooled_logits(attention: ArrayLike, logits: ArrayLike) -> np.ndarray:
    """[.., c] Σ_t α_t (W h_t + b), which is the model's own logit W (Σ α_t h_t) + b, since Σ α_t = 1.

    attention [.., t]; logits [.., t, c], or [.., t] of a binary decoder, whose result is [..].
    """
    alpha = np.asarray(attention, np.float64)
    of_tokens = np.asarray(logits, np.float64)
    totals = alpha.sum(-1)
    if not np.allclose(totals, 1, atol=1e-3):
        raise InputError(
            "Attention must add up to 1, or the logits of tokens do not make those of the text."
        )
    pooled: np.ndarray
    if of_tokens.ndim == alpha.ndim:
        pooled = (alpha * of_tokens).sum(-1)
    else:
        pooled = np.einsum("...t,...tc->...c", alpha, of_tokens)
    return pooled


def probability_from_token_logits(
    logits: ArrayLike,
    predicted: int,
    mask: ArrayLike | None = None,
) -> float:
    """The probability of the predicted class from each token alone, averaged over the tokens of one text (P3 Table 3).

    logits [t] of a linear layer with one output (class 1 has σ(logit), class 0 has σ(−logit)), or [t, c] (softmax). P3
    averages over the texts that are predicted correctly. Where it is near the probability of the whole text, all states
    say the same, and attention chooses among equals. NaN without real tokens.
    """
    of_tokens = np.asarray(logits, np.float64)
    if of_tokens.ndim not in (1, 2):
        raise InputError(
            f"Logits are [token] or [token, class] of one text, not {of_tokens.shape}."
        )
    binary = of_tokens.ndim == 1
    classes = 2 if binary else of_tokens.shape[1]
    is_class = predicted in range(classes) and not isinstance(predicted, bool)
    if not is_class:
        raise InputError(
            f"The predicted class is a number from 0 to {classes - 1}, not {predicted}."
        )

    if binary:
        log_p = log_probability_of_binary_logits(of_tokens, predicted)
    else:
        log_p = log_probability_of_softmax_logits(of_tokens, predicted)
    if mask is not None:
        real = np.asarray(mask, bool)
        log_p = log_p[real]
    if not len(log_p):
        return float("nan")
    p = np.exp(log_p)
    return float(p.mean())


def log_probability_of_binary_logits(logits: np.ndarray, predicted: int) -> np.ndarray:
    """[t] ln σ(logit) of class 1, ln σ(−logit) of class 0."""
    exponents = -logits if predicted else logits
    log_p: np.ndarray = -np.logaddexp(0.0, exponents)  # ln σ(x) = −ln(1 + e^−x)
    return log_p


def log_probability_of_softmax_logits(logits: np.ndarray, predicted: int) -> np.ndarray:
    """[t] the logarithm of a class's softmax, logits [t c]."""
    of_all = np.logaddexp.reduce(logits, axis=1)
    log_p: np.ndarray = logits[:, predicted] - of_all
    return log_p
