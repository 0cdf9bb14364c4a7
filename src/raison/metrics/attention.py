"""What attention tells: its entropy, its agreement with importance, and what becomes of a model when it is changed.

Pure functions of arrays (Jain & Wallace 2019, Wiegreffe & Pinter 2019, Meister et al. 2021 = P2, Tutek & Šnajder 2020 =
P3). Weights are [.., t]; `mask` [.., t] is True for real tokens, without it all are. What is said about a token or a
row that is not there is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from raison.core.errors import InputError
from raison.core.spec import whole

__all__ = [
    "Information",
    "clusters",
    "information_of_states",
    "jensen_shannon",
    "kendall_defined",
    "kendall_tau",
    "mutual_information",
    "normalised_entropy",
    "permuted_attention",
    "pooled_logits",
    "shuffled_information",
    "token_logits",
    "token_probability",
    "total_variation",
    "uniform_attention",
]

CELLS = 1 << 20  # numbers of an intermediate table at a time: bounds memory


# -- distributions ------------------------------------------------------------------------------------------


def weighed(weights: Any, mask: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """[.., t] weights that add up to 1 over real tokens (NaN where there is no weight at all), and the mask."""
    weights = np.asarray(weights, np.float64)
    if weights.ndim < 1:
        raise InputError("Weights are given per token: a list, not a single number.")
    real = np.ones(weights.shape, bool) if mask is None else over(weights, mask)
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError("Weights can't be negative, NaN or infinite.")
    weights = np.where(real, weights, 0.0)
    total = weights.sum(-1, keepdims=True)
    return np.divide(weights, total, out=np.full_like(weights, np.nan), where=total > 0), real


def over(weights: np.ndarray, mask: Any) -> np.ndarray:
    """The mask in the shape of the weights."""
    given = np.asarray(mask, bool)
    try:
        return np.broadcast_to(given, weights.shape)
    except ValueError:
        raise InputError(f"A mask of the shape {given.shape} does not fit weights of {weights.shape}.") from None


def plain(value: np.ndarray) -> Any:
    """A number for one text, an array for many."""
    return float(value) if value.ndim == 0 else value


def xlogx(p: np.ndarray) -> np.ndarray:
    """p ln p, with 0 ln 0 = 0."""
    return p * np.log(np.where(p == 0, 1.0, p))


def normalised_entropy(weights: Any, mask: Any = None) -> Any:
    """H̃ = −Σ p ln p / ln n over the n real tokens: 0 for one token with all weight, 1 for equal weights (P2, 3.2).

    Weights are made to add up to 1. A text of one token has 0. NaN where all weights are 0 (a gradient that vanished):
    no distribution exists there; leave it out and count it.
    """
    p, real = weighed(weights, mask)
    n = real.sum(-1)
    entropy = -xlogx(p).sum(-1)
    most = np.log(np.maximum(n, 2))  # one token has entropy 0 anyway
    return plain(np.clip(entropy / most, 0.0, 1.0) + 0.0)


def jensen_shannon(first: Any, second: Any, mask: Any = None) -> Any:
    """JSD = ½ KL(p‖m) + ½ KL(q‖m) with m = (p + q) / 2, in nats: 0 for equal ones, at most ln 2 (P2 App. C, P3 4.3).

    Finite where weights are 0, as those of sparsemax are. Weights are made to add up to 1; NaN where one has none.
    """
    p, _ = weighed(first, mask)
    q, _ = weighed(second, mask)
    if p.shape[-1] != q.shape[-1]:
        raise InputError(f"Two attentions must be over the same tokens, not {p.shape[-1]} and {q.shape[-1]}.")
    middle = (p + q) / 2
    value = half_divergence(p, middle) + half_divergence(q, middle)
    return plain(np.clip(value, 0.0, np.log(2.0)) + 0.0)


def half_divergence(p: np.ndarray, middle: np.ndarray) -> np.ndarray:
    ratio = np.divide(p, middle, out=np.ones_like(middle), where=(p > 0) & (middle > 0))
    return 0.5 * np.where(np.isnan(middle), np.nan, p * np.log(ratio)).sum(-1)


def total_variation(first: Any, second: Any) -> Any:
    """TVD = ½ Σ_y |p(y) − q(y)| of two predictions [.., c], from 0 to 1.

    For two classes it is |p(1) − q(1)|; give both classes. (Released code of Wiegreffe & Pinter gives half of that.)
    """
    p, q = np.asarray(first, np.float64), np.asarray(second, np.float64)
    for values in (p, q):
        if values.ndim < 1 or not np.allclose(values.sum(-1), 1, atol=1e-3) or (values < 0).any():
            raise InputError("A prediction must give the probability of every class, which add up to 1.")
    if p.shape[-1] != q.shape[-1]:
        raise InputError(f"Two predictions must be over the same classes, not {p.shape[-1]} and {q.shape[-1]}.")
    return plain(np.abs(p - q).sum(-1) / 2)


# -- ranks --------------------------------------------------------------------------------------------------


def kendall_tau(first: Any, second: Any) -> float:
    """Kendall's τ-b of two lists of numbers: agreement of all pairs, corrected for ties (Kendall 1945; P2 Table 6).

    τ_b = (concordant − discordant) / √((N − ties in x) (N − ties in y)), N = n (n − 1) / 2 pairs. Ties matter: sparse
    attention has many exact zeros. Where one list is constant (or has fewer than two numbers) there is no order to
    agree with: 0, which is what a random order has in the mean; `kendall_defined` tells such cases apart.
    """
    x, y = two_lists(first, second)
    agreement, moved_x, moved_y = pair_counts(x, y)
    if not moved_x or not moved_y:
        return 0.0
    return float(np.clip(agreement / np.sqrt(moved_x) / np.sqrt(moved_y), -1.0, 1.0))


def kendall_defined(first: Any, second: Any) -> bool:
    """Whether both lists have two different numbers, so that τ is more than a convention."""
    x, y = two_lists(first, second)
    return bool((x != x[:1]).any() and (y != y[:1]).any())


def two_lists(first: Any, second: Any) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise InputError(f"Ranks are compared of two lists of the same length, not {x.shape} and {y.shape}.")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("Numbers that are ranked can't be NaN or infinite.")
    return x, y


def pair_counts(x: np.ndarray, y: np.ndarray) -> tuple[int, int, int]:
    """Concordant − discordant pairs, and pairs that are not tied in x and in y; each pair once."""
    n = len(x)
    # by ranks, whose differences can't overflow or vanish
    x = np.unique(x, return_inverse=True)[1].astype(np.int32)
    y = np.unique(y, return_inverse=True)[1].astype(np.int32)
    agreement = moved_x = moved_y = 0
    step = max(1, CELLS // max(n, 1))
    for start in range(0, n, step):
        a = np.sign(x[start : start + step, None] - x).astype(np.int8)
        b = np.sign(y[start : start + step, None] - y).astype(np.int8)
        agreement += int((a * b).sum(dtype=np.int64))
        moved_x += int(np.count_nonzero(a))
        moved_y += int(np.count_nonzero(b))
    return agreement // 2, moved_x // 2, moved_y // 2


# -- other attention ----------------------------------------------------------------------------------------


def uniform_attention(mask: Any) -> np.ndarray:
    """[.., t] 1/n for each of the n real tokens, 0 elsewhere (P3 4.2)."""
    real = np.asarray(mask, bool)
    return real / np.maximum(real.sum(-1, keepdims=True), 1)


def permuted_attention(weights: Any, mask: Any = None, *, seed: int = 0) -> np.ndarray:
    """[.., t] the same weights in random order among the real tokens of each row, 0 elsewhere (P3 4.2).

    The order depends on the seed and on the number of the row; average over ten seeds or more.
    """
    given = np.asarray(weights, np.float64)
    real = np.ones(given.shape, bool) if mask is None else over(given, mask)
    if given.ndim < 1 or (given[~real] != 0).any():
        raise InputError("Attention outside the mask would be lost: it must be 0 on what is no real token.")
    if not given.size:
        return given
    whole("seed", seed, 0)
    result = np.zeros_like(given)
    rows = zip(given.reshape(-1, given.shape[-1]), real.reshape(-1, given.shape[-1]), strict=True)
    for number, (row, there) in enumerate(rows):
        places = np.flatnonzero(there)
        order = np.random.default_rng([seed, number]).permutation(places)
        result.reshape(-1, given.shape[-1])[number, places] = row[order]
    return result


# -- what single tokens say ---------------------------------------------------------------------------------


def token_logits(states: Any, weight: Any, bias: Any = 0.0) -> np.ndarray:
    """[.., t, c] W h_t + b: the logits of a linear decoder if all attention were on one token (P3 4.2).

    states [.., t, d], weight [c, d], bias [c]; with weight [d], the one logit of a binary decoder: [.., t].
    """
    return np.asarray(states, np.float64) @ np.asarray(weight, np.float64).T + np.asarray(bias, np.float64)


def pooled_logits(attention: Any, logits: Any) -> np.ndarray:
    """[.., c] Σ_t α_t (W h_t + b), which is the model's own logit W (Σ α_t h_t) + b, since Σ α_t = 1.

    attention [.., t]; logits [.., t, c], or [.., t] of a binary decoder, whose result is [..].
    """
    a, given = np.asarray(attention, np.float64), np.asarray(logits, np.float64)
    if not np.allclose(a.sum(-1), 1, atol=1e-3):
        raise InputError("Attention must add up to 1, or the logits of tokens do not make those of the text.")
    if given.ndim == a.ndim:
        return (a * given).sum(-1)
    return np.einsum("...t,...tc->...c", a, given)


def token_probability(logits: Any, predicted: int, mask: Any = None) -> float:
    """The probability of the predicted class from each token alone, averaged over the tokens of one text (P3 Table 3).

    logits [t] of a binary decoder (class 1 has σ(logit), class 0 has σ(−logit)), or [t, c] (softmax). P3 averages over
    the texts that are predicted correctly. Near the probability of the whole text: all states say the same, and
    attention chooses among equals. NaN without real tokens.
    """
    given = np.asarray(logits, np.float64)
    if given.ndim not in (1, 2):
        raise InputError(f"Logits are [token] or [token, class] of one text, not {given.shape}.")
    classes = 2 if given.ndim == 1 else given.shape[1]
    if isinstance(predicted, bool) or predicted not in range(classes):
        raise InputError(f"The predicted class is a number from 0 to {classes - 1}, not {predicted}.")
    if given.ndim == 1:
        log = -np.logaddexp(0.0, -given if predicted else given)
    else:
        log = given[:, predicted] - np.logaddexp.reduce(given, axis=1)
    real = np.ones(len(given), bool) if mask is None else np.asarray(mask, bool)
    return float(np.exp(log[real]).mean()) if real.any() else float("nan")


# -- mutual information -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Information:
    """How much two sets of vectors tell about each other, and how much of that is only few data."""

    value: float  # nats
    bias: float  # the same after the pairs were shuffled: what independent vectors would show
    pairs: int  # N
    k: int  # clusters on each side, asked for
    used: tuple[int, int]  # clusters that got a point: fewer, where vectors repeat or have no structure


def mutual_information(first: Any, second: Any) -> float:
    """MI = Σ p(i, j) ln [p(i, j) / (p(i) p(j))] of paired labels, in nats; at most the smaller entropy.

    The plug-in estimate: too high by about (k − 1)² / 2N for k labels on each side and N pairs. NaN without pairs.
    """
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"Labels must come in pairs, not {a.shape} and {b.shape}.")
    if not len(a):
        return float("nan")
    a, b = (np.unique(side, return_inverse=True)[1].astype(np.int64) for side in (a, b))
    width = int(b.max()) + 1
    cells, joint = np.unique(a * width + b, return_counts=True)  # a table of k² would be mostly empty
    i, j = cells // width, cells % width
    expected = np.bincount(a)[i] / len(a) * np.bincount(b)[j]
    return max(0.0, float((joint / len(a)) @ np.log(joint / expected)))


def shuffled_information(first: Any, second: Any, *, repeats: int = 5, seed: int = 0) -> float:
    """The mean mutual information after one side was shuffled: what the estimate says about independent labels."""
    whole("repeats", repeats, 1)
    generator = np.random.default_rng(seed)
    return float(np.mean([mutual_information(first, generator.permutation(second)) for _ in range(repeats)]))


def information_of_states(
    inputs: Any,
    states: Any,
    *,
    k: int | None = None,
    batch: int | None = 1024,
    passes: int = 10,
    repeats: int = 5,
    seed: int = 0,
) -> Information:
    """Mutual information of input embeddings [n, d] and hidden states [n, e], each side clustered by k-means (P3 4.2).

    P3 has 1000 words, up to a million pairs, k = 1000 and batches of 100. The estimate is biased by (k − 1)² / 2N, so
    by default k is at most 1000 and so small that this is at most 0.1; compare `value` with `bias`, never alone.
    """
    x, h = points(inputs), points(states)
    if len(x) != len(h):
        raise InputError(f"Embeddings and hidden states must come in pairs, not {len(x)} and {len(h)}.")
    if k is None:
        k = min(1000, 1 + isqrt(len(x) // 5))
    left = clusters(x, k, batch=batch, passes=passes, seed=seed)
    right = clusters(h, k, batch=batch, passes=passes, seed=seed)
    used = len(np.unique(left)), len(np.unique(right))
    bias = shuffled_information(left, right, repeats=repeats, seed=seed)
    return Information(mutual_information(left, right), bias, len(x), k, used)


def clusters(given: Any, k: int, *, batch: int | None = None, passes: int = 100, seed: int = 0) -> np.ndarray:
    """[n] the cluster of each point by k-means: Lloyd's algorithm, or with `batch` Sculley's (2010) mini-batches.

    The first centres are drawn as in k-means++ (Arthur & Vassilvitskii 2007), which with fewer than k different points
    leaves clusters empty. `passes` over the points: at most so many, or with batches exactly.
    """
    data = points(given)
    whole("k", k, 1)
    whole("passes", passes, 1)
    if batch is not None:
        whole("batch", batch, 1)
    if not len(data):
        raise InputError("There are no vectors to cluster.")
    data = data - data.mean(0)  # distances are differences of squares: exact enough only near 0
    generator = np.random.default_rng(seed)
    centres = spread(data, k, generator)
    members = np.zeros(len(centres))
    size = len(data) if batch is None else min(batch, len(data))
    for _ in range(passes * -(-len(data) // size)):
        drawn = data if size == len(data) else data[generator.integers(0, len(data), size)]
        label = nearest(drawn, centres)
        count = np.bincount(label, minlength=len(centres))
        there = count > 0
        first = (np.cumsum(count) - count)[there]
        total = np.add.reduceat(drawn[np.argsort(label, kind="stable")], first)  # of the clusters that got points
        if drawn is data:
            moved = total / count[there, None]
            if np.array_equal(centres[there], moved):
                break
            centres[there] = moved
        else:  # each centre is the mean of all points that it was ever given
            members += count
            centres[there] += (total - count[there, None] * centres[there]) / members[there, None]
    return nearest(data, centres)


def spread(data: np.ndarray, k: int, generator: np.random.Generator) -> np.ndarray:
    """[≤ k, d] points, each drawn with a probability proportional to its squared distance to those before."""
    # from a sample, if there are many points: k passes over a million would take longer than the clustering
    pool = data if len(data) <= 20 * k else data[generator.choice(len(data), 20 * k, replace=False)]
    chosen = [pool[generator.integers(len(pool))]]
    far = ((pool - chosen[0]) ** 2).sum(1)
    while len(chosen) < k and far.sum() > 0:
        chosen.append(pool[generator.choice(len(pool), p=far / far.sum())])
        far = np.minimum(far, ((pool - chosen[-1]) ** 2).sum(1))
    return np.stack(chosen)


def nearest(data: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """[n] the nearest centre of each point, the first of equals."""
    step = max(1, CELLS // len(centres))
    size = (centres**2).sum(1)
    parts = [(size - 2 * (data[i : i + step] @ centres.T)).argmin(1) for i in range(0, len(data), step)]
    return np.concatenate(parts)


def points(given: Any) -> np.ndarray:
    data = np.asarray(given, np.float64)
    if data.ndim != 2 or not np.isfinite(data).all():
        raise InputError(f"Vectors to cluster are a table [n, d] of finite numbers, not {data.shape}.")
    return data
