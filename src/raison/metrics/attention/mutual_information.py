"""How much hidden states tell about the words at which they stand: mutual information of clusters (P3 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.typing import ArrayLike

from raison.core.errors import InputError
from raison.core.parameters import check_integer
from raison.metrics.attention.kmeans import clusters, finite_vectors

__all__ = ["Information", "information_of_states", "mutual_information", "shuffled_information"]


@dataclass(frozen=True)
class Information:
    """How much two sets of vectors tell about each other, and how much of that is only few data."""

    value: float  # nats
    bias: float  # the same after the pairs were shuffled: what independent vectors would show
    pairs: int  # N
    k: int  # clusters on each side, asked for
    used: tuple[
        int, int
    ]  # clusters that got a point: fewer, where vectors repeat or have no structure


def mutual_information(first: ArrayLike, second: ArrayLike) -> float:
    """MI = Σ p(i, j) ln [p(i, j) / (p(i) p(j))] of paired labels, in nats; at most the smaller entropy.

    The plug-in estimate: too high by about (k − 1)² / 2N for k labels on each side and N pairs. NaN without pairs.
    """
    a = np.asarray(first)
    b = np.asarray(second)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"Labels must come in pairs, not {a.shape} and {b.shape}.")
    n = len(a)
    if not n:
        return float("nan")

    a = cluster_numbers_of_labels(a)
    b = cluster_numbers_of_labels(b)
    width = int(b.max()) + 1
    # only the cells that have a pair: a table of k² would be mostly empty
    cells, counts = np.unique(a * width + b, return_counts=True)
    i, j = np.divmod(cells, width)

    a_counts = np.bincount(a)[i]
    b_counts = np.bincount(b)[j]
    expected = a_counts / n * b_counts  # if the labels were independent
    log_ratios = np.log(counts / expected)
    information = (counts / n) @ log_ratios
    return max(0.0, float(information))


def cluster_numbers_of_labels(labels: np.ndarray) -> np.ndarray:
    """[n] the same labels as numbers from 0 on."""
    _, numbers = np.unique(labels, return_inverse=True)
    return numbers.astype(np.int64)


def shuffled_information(
    first: ArrayLike,
    second: ArrayLike,
    *,
    repeats: int = 5,
    seed: int = 0,
) -> float:
    """The mean mutual information after one side was shuffled: what the estimate says about independent labels."""
    check_integer("repeats", repeats, 1)
    generator = np.random.default_rng(seed)
    labels = np.asarray(second)
    values = []
    for _ in range(repeats):
        shuffled = generator.permutation(labels)
        values.append(mutual_information(first, shuffled))
    return float(np.mean(values))


def information_of_states(
    inputs: ArrayLike,
    states: ArrayLike,
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
    x = finite_vectors(inputs)
    h = finite_vectors(states)
    pairs = len(x)
    if pairs != len(h):
        raise InputError(
            f"Embeddings and hidden states must come in pairs, not {pairs} and {len(h)}."
        )
    if k is None:
        most = 1 + isqrt(pairs // 5)
        k = min(1000, most)

    x_clusters = clusters(x, k, batch=batch, passes=passes, seed=seed)
    h_clusters = clusters(h, k, batch=batch, passes=passes, seed=seed)
    value = mutual_information(x_clusters, h_clusters)
    bias = shuffled_information(x_clusters, h_clusters, repeats=repeats, seed=seed)
    x_used = len(np.unique(x_clusters))
    h_used = len(np.unique(h_clusters))
    return Information(value, bias, pairs, k, used=(x_used, h_used))
