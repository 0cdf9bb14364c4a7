"""The farthest attention on one word or on two that leaves a text's answer as it is: corners and a grid.

The answer is softmax(Σ α_t w_t), where w_t are the logits that word t gives by itself. Distances are Jensen-Shannon
divergences in nats.
"""

from __future__ import annotations

import numpy as np

__all__ = ["CLOSE", "divergences_of_one_word", "farthest_corner", "farthest_on_grid", "softmax"]

CLOSE = 0.05  # TVD up to which an answer is the same
GRID = np.linspace(0, 1, 41)  # shares of the first of two words
ROOM = 1 << 22  # numbers of a grid at once


def farthest_corner(own: np.ndarray, lean: np.ndarray) -> float:
    """The largest JSD for two classes; [t] `lean` is how much each word leans to the second one.

    A corner of what is allowed has all attention on one word, or on two words with the answer at the edge.
    """
    answer = 1 / (1 + np.exp(-(own @ lean)))
    edges = [logit(max(0.0, answer - CLOSE)), logit(min(1.0, answer + CLOSE))]
    one_word_is_enough = (lean >= edges[0]) & (lean <= edges[1])
    divergences = [0.0, *divergences_of_one_word(own)[one_word_is_enough]]

    gaps = lean[:, None] - lean[None, :]
    each_pair_once = lean[:, None] > lean[None, :]
    for edge in edges:
        if np.isfinite(edge):
            outside = np.full_like(gaps, -1.0)
            share = np.divide(edge - lean[None, :], gaps, out=outside, where=each_pair_once)
            reaches_edge = (share >= 0) & (share <= 1)
            of_pairs = divergences_of_two_words(own, np.where(reaches_edge, share, 0.0))
            divergences += of_pairs[reaches_edge].tolist()
    return float(max(divergences))


def farthest_on_grid(own: np.ndarray, logits: np.ndarray) -> float:
    """The largest JSD on a grid between any two words, where the answer stays; logits are [t c]."""
    answer = softmax(own @ logits)
    shares = GRID[:, None, None, None]
    words = np.arange(len(own))
    best = 0.0
    rows = max(1, ROOM // max(1, logits.size * len(GRID)))
    for start in range(0, len(own), rows):
        first = words[start : start + rows]
        mixed = shares * logits[None, first, None] + (1 - shares) * logits[None, None]
        distances = np.abs(softmax(mixed) - answer).sum(-1) / 2
        allowed = distances <= CLOSE  # [g i j]
        allowed &= first[None, :, None] != words[None, None, :]
        for number in np.flatnonzero(allowed.any((1, 2))):
            divergences = divergences_of_two_words(
                own, np.full((len(own), len(own)), GRID[number])
            )[first]
            best = max(best, float(divergences[allowed[number]].max()))
    return best


def divergences_of_one_word(own: np.ndarray) -> np.ndarray:
    """[t] JSD of attention and all attention on one word."""
    half = own / 2
    middle = entropy_terms(half).sum() - entropy_terms(half) + entropy_terms(half + 0.5)
    return np.asarray(middle - entropy_terms(own).sum() / 2)


def divergences_of_two_words(own: np.ndarray, share: np.ndarray) -> np.ndarray:
    """[.. t t] JSD of attention and of attention on two words, of which the first has `share` [.. t t]."""
    half = own / 2
    rest = entropy_terms(half)
    both = entropy_terms(half[:, None] + share / 2) + entropy_terms(half[None, :] + (1 - share) / 2)
    middle = rest.sum() - rest[:, None] - rest[None, :] + both
    ends = (entropy_terms(own).sum() + entropy_terms(share) + entropy_terms(1 - share)) / 2
    return np.asarray(middle - ends)


def entropy_terms(x: np.ndarray) -> np.ndarray:
    """−x ln x."""
    return np.asarray(-x * np.log(np.where(x > 0, x, 1.0)))


def logit(probability: float) -> float:
    with np.errstate(divide="ignore"):
        return float(np.log(probability) - np.log1p(-probability))


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities over the last axis."""
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))
