"""The farthest attention on one word or on two that leaves a text's answer as it is: corners and a grid.

The answer is softmax(Σ α_t w_t), where w_t are the logits that word t gives by itself. Distances are Jensen-Shannon
divergences in nats.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "CLOSE",
    "divergences_of_one_word",
    "farthest_corner",
    "farthest_on_grid",
    "softmax_of_answer",
]

CLOSE = 0.05  # TVD up to which an answer is the same
GRID = np.linspace(0, 1, 41)  # shares of the first of two words
ROOM = 1 << 22  # numbers of a grid at once


def farthest_corner(own: np.ndarray, lean: np.ndarray) -> float:
    """The largest JSD for two classes; [t] `lean` is how much each word leans to the second one.

    A corner of what is allowed has all attention on one word, or on two words with the answer at the edge.
    """
    mean_lean = own @ lean
    answer = 1 / (1 + np.exp(-mean_lean))
    lowest_answer = max(0.0, answer - CLOSE)
    highest_answer = min(1.0, answer + CLOSE)
    low_edge = logit_of_answer(lowest_answer)
    high_edge = logit_of_answer(highest_answer)

    not_too_low = lean >= low_edge
    not_too_high = lean <= high_edge
    one_word_is_enough = not_too_low & not_too_high
    of_one_word = divergences_of_one_word(own)
    divergences = [0.0, *of_one_word[one_word_is_enough]]

    first = lean[:, None]
    second = lean[None, :]
    gaps = first - second
    each_pair_once = first > second
    for edge in (low_edge, high_edge):
        if not np.isfinite(edge):
            continue
        outside = np.full_like(gaps, -1.0)
        way_to_edge = edge - second
        share = np.divide(way_to_edge, gaps, out=outside, where=each_pair_once)
        reaches_edge = (share >= 0) & (share <= 1)
        valid_share = np.where(reaches_edge, share, 0.0)
        of_pairs = divergences_of_two_words(own, valid_share)
        divergences += of_pairs[reaches_edge].tolist()
    return float(max(divergences))


def farthest_on_grid(own: np.ndarray, logits: np.ndarray) -> float:
    """The largest JSD on a grid between any two words, where the answer stays; logits are [t c]."""
    answer = softmax_of_answer(own @ logits)
    count = len(own)
    words = np.arange(count)
    shares = GRID[:, None, None, None]
    rest = 1 - shares
    from_second = rest * logits[None, None]  # [g 1 j c]
    numbers_of_a_row = logits.size * len(GRID)
    rows = max(1, ROOM // max(1, numbers_of_a_row))

    best = 0.0
    for start in range(0, count, rows):
        end = start + rows
        first = words[start:end]
        from_first = shares * logits[None, first, None]  # [g i 1 c]
        mixed = from_first + from_second
        moves = np.abs(softmax_of_answer(mixed) - answer)
        distances = moves.sum(-1) / 2
        two_words = first[:, None] != words
        allowed = (distances <= CLOSE) & two_words  # [g i j]
        somewhere = allowed.any((1, 2))
        for number in np.flatnonzero(somewhere):
            share = np.full((count, count), GRID[number])
            of_pairs = divergences_of_two_words(own, share)[first]
            farthest = of_pairs[allowed[number]].max()
            best = max(best, float(farthest))
    return best


def divergences_of_one_word(own: np.ndarray) -> np.ndarray:
    """[t] JSD of attention and all attention on one word."""
    half = own / 2
    rest = entropy_terms_of_word_weights(half)
    of_word = entropy_terms_of_word_weights(half + 0.5)
    middle = rest.sum() - rest + of_word
    ends = entropy_terms_of_word_weights(own).sum() / 2
    return np.asarray(middle - ends)


def divergences_of_two_words(own: np.ndarray, share: np.ndarray) -> np.ndarray:
    """[.. t t] JSD of attention and of attention on two words, of which the first has `share` [.. t t]."""
    other_share = 1 - share
    half = own / 2
    first = half[:, None] + share / 2
    second = half[None, :] + other_share / 2
    both = entropy_terms_of_word_weights(first) + entropy_terms_of_word_weights(second)
    rest = entropy_terms_of_word_weights(half)
    without_first = rest.sum() - rest[:, None]
    without_both = without_first - rest[None, :]
    middle = without_both + both

    of_own = entropy_terms_of_word_weights(own).sum()
    of_own_and_first = of_own + entropy_terms_of_word_weights(share)
    of_all = of_own_and_first + entropy_terms_of_word_weights(other_share)
    ends = of_all / 2
    return np.asarray(middle - ends)


def entropy_terms_of_word_weights(x: np.ndarray) -> np.ndarray:
    """−x ln x."""
    one_for_zero = np.where(x > 0, x, 1.0)
    return np.asarray(-x * np.log(one_for_zero))


def logit_of_answer(probability: float) -> float:
    """ln p − ln (1 − p); infinite at the ends."""
    with np.errstate(divide="ignore"):
        yes = np.log(probability)
        no = np.log1p(-probability)
    return float(yes - no)


def softmax_of_answer(logits: np.ndarray) -> np.ndarray:
    """Probabilities over the last axis."""
    largest = logits.max(-1, keepdims=True)
    raised = np.exp(logits - largest)
    total = raised.sum(-1, keepdims=True)
    return np.asarray(raised / total)
