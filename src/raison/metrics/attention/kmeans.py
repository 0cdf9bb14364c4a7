"""Clusters of vectors by k-means: Lloyd's algorithm, or Sculley's with mini-batches."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from raison.core.errors import InputError
from raison.core.parameters import check_integer

__all__ = ["clusters", "finite_vectors"]

CELLS = 1 << 20  # distances at a time: bounds memory
DRAWN_FOR_EACH_CENTRE = 20  # points from which the first centres are drawn, if there are more


def clusters(
    vectors: ArrayLike,
    k: int,
    *,
    batch: int | None = None,
    passes: int = 100,
    seed: int = 0,
) -> np.ndarray:
    """[n] the cluster of each point by k-means: Lloyd's algorithm, or with `batch` Sculley's (2010) mini-batches.

    The first centres are drawn as in k-means++ (Arthur & Vassilvitskii 2007), which with fewer than k different points
    leaves clusters empty. `passes` over the points: at most so many, or with batches exactly.
    """
    data = finite_vectors(vectors)
    check_integer("k", k, 1)
    check_integer("passes", passes, 1)
    if batch is not None:
        check_integer("batch", batch, 1)
    if not len(data):
        raise InputError("There are no vectors to cluster.")

    data = data - data.mean(0)  # distances are differences of squares: exact enough only near 0
    generator = np.random.default_rng(seed)
    centres = draw_first_cluster_centres(data, k, generator)
    if batch is None or batch >= len(data):
        move_centres_by_all_points(data, centres, passes)
    else:
        batches_of_a_pass = ceil(len(data) / batch)
        steps = passes * batches_of_a_pass
        move_centres_by_batches(data, centres, batch=batch, steps=steps, generator=generator)
    return nearest_cluster_centres(data, centres)


def move_centres_by_all_points(data: np.ndarray, centres: np.ndarray, passes: int) -> None:
    """Lloyd's algorithm: each centre becomes the mean of its points, until none moves."""
    for _ in range(passes):
        groups = group_points_by_cluster(data, centres)
        means = groups.sums / groups.counts[:, None]
        if np.array_equal(centres[groups.centres], means):
            break
        centres[groups.centres] = means


def move_centres_by_batches(
    data: np.ndarray,
    centres: np.ndarray,
    *,
    batch: int,
    steps: int,
    generator: np.random.Generator,
) -> None:
    """Sculley's algorithm: each centre is the mean of all points that it was ever given."""
    members = np.zeros(len(centres))
    for _ in range(steps):
        drawn = generator.integers(0, len(data), batch)
        groups = group_points_by_cluster(data[drawn], centres)
        members[groups.centres] += groups.counts

        old = centres[groups.centres]
        change = groups.sums - groups.counts[:, None] * old
        all_members = members[groups.centres]
        centres[groups.centres] = old + change / all_members[:, None]


@dataclass(frozen=True)
class Groups:
    """The centres that have points, how many, and the sums of these points."""

    centres: np.ndarray  # [g] numbers of the centres
    counts: np.ndarray  # [g]
    sums: np.ndarray  # [g d]


def group_points_by_cluster(points: np.ndarray, centres: np.ndarray) -> Groups:
    """The points grouped by their nearest centres."""
    nearest = nearest_cluster_centres(points, centres)
    all_counts = np.bincount(nearest, minlength=len(centres))
    numbers = np.flatnonzero(all_counts)
    counts = all_counts[numbers]

    order = np.argsort(nearest, kind="stable")
    first = np.cumsum(counts) - counts  # of each group
    sums = np.add.reduceat(points[order], first)
    return Groups(numbers, counts, sums)


def draw_first_cluster_centres(
    data: np.ndarray,
    k: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """[≤ k, d] points, each drawn with a probability proportional to its squared distance to those before."""
    # from a sample, if there are many points: k passes over a million would take longer than the clustering
    pool = data
    most = DRAWN_FOR_EACH_CENTRE * k
    if len(data) > most:
        sample = generator.choice(len(data), most, replace=False)
        pool = data[sample]

    first = generator.integers(len(pool))
    centres = [pool[first]]
    distances = squared_distances_to_centre(pool, centres[0])
    while len(centres) < k and distances.sum() > 0:
        chances = distances / distances.sum()
        drawn = generator.choice(len(pool), p=chances)
        centre = pool[drawn]
        centres.append(centre)
        distances = np.minimum(distances, squared_distances_to_centre(pool, centre))
    return np.stack(centres)


def squared_distances_to_centre(points: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """[n] of each point to the centre."""
    distances: np.ndarray = ((points - centre) ** 2).sum(1)
    return distances


def nearest_cluster_centres(data: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """[n] the nearest centre of each point, the first of equals."""
    step = max(1, CELLS // len(centres))
    squares = (centres**2).sum(1)
    parts = []
    for start in range(0, len(data), step):
        some = data[start : start + step]
        products = some @ centres.T
        distances = (
            squares - 2 * products
        )  # without the square of the point, which is the same for all centres
        parts.append(distances.argmin(1))
    return np.concatenate(parts)


def finite_vectors(vectors: ArrayLike) -> np.ndarray:
    """[n, d] vectors as an array of finite numbers."""
    data = np.asarray(vectors, np.float64)
    if data.ndim != 2 or not np.isfinite(data).all():
        raise InputError(
            f"Vectors to cluster are a table [n, d] of finite numbers, not {data.shape}."
        )
    return data
