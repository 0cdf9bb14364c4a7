"""Clusters of vectors by k-means: Lloyd's algorithm, or Sculley's with mini-batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from raison.core.errors import InputError
from raison.core.spec import whole

__all__ = ["clusters", "finite_vectors"]

CELLS = 1 << 20  # distances at a time: bounds memory
DRAWN_FOR_EACH_CENTRE = 20  # points from which the first centres are drawn, if there are more


def clusters(vectors: ArrayLike, k: int, *, batch: int | None = None, passes: int = 100, seed: int = 0) -> np.ndarray:
    """[n] the cluster of each point by k-means: Lloyd's algorithm, or with `batch` Sculley's (2010) mini-batches.

    The first centres are drawn as in k-means++ (Arthur & Vassilvitskii 2007), which with fewer than k different points
    leaves clusters empty. `passes` over the points: at most so many, or with batches exactly.
    """
    data = finite_vectors(vectors)
    whole("k", k, 1)
    whole("passes", passes, 1)
    if batch is not None:
        whole("batch", batch, 1)
    if not len(data):
        raise InputError("There are no vectors to cluster.")

    data = data - data.mean(0)  # distances are differences of squares: exact enough only near 0
    generator = np.random.default_rng(seed)
    centres = draw_first_centres(data, k, generator)
    if batch is None or batch >= len(data):
        move_by_all_points(data, centres, passes)
    else:
        steps = passes * -(-len(data) // batch)  # batches of a pass, rounded up
        move_by_batches(data, centres, batch=batch, steps=steps, generator=generator)
    return nearest_centres(data, centres)


def move_by_all_points(data: np.ndarray, centres: np.ndarray, passes: int) -> None:
    """Lloyd's algorithm: each centre becomes the mean of its points, until none moves."""
    for _ in range(passes):
        nearest = nearest_centres(data, centres)
        counts, sums, has_points = sums_by_centre(data, nearest, len(centres))
        means = sums / counts[has_points, None]
        if np.array_equal(centres[has_points], means):
            break
        centres[has_points] = means


def move_by_batches(
    data: np.ndarray, centres: np.ndarray, *, batch: int, steps: int, generator: np.random.Generator
) -> None:
    """Sculley's algorithm: each centre is the mean of all points that it was ever given."""
    members = np.zeros(len(centres))
    for _ in range(steps):
        points = data[generator.integers(0, len(data), batch)]
        nearest = nearest_centres(points, centres)
        counts, sums, has_points = sums_by_centre(points, nearest, len(centres))
        members += counts
        new = counts[has_points, None]
        centres[has_points] += (sums - new * centres[has_points]) / members[has_points, None]


def sums_by_centre(points: np.ndarray, nearest: np.ndarray, centres: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[k] counts of points, [≤ k, d] their sums at the centres that have some, and [k] which centres these are."""
    counts = np.bincount(nearest, minlength=centres)
    has_points = counts > 0
    first = (np.cumsum(counts) - counts)[has_points]
    in_order = points[np.argsort(nearest, kind="stable")]
    return counts, np.add.reduceat(in_order, first), has_points


def draw_first_centres(data: np.ndarray, k: int, generator: np.random.Generator) -> np.ndarray:
    """[≤ k, d] points, each drawn with a probability proportional to its squared distance to those before."""
    # from a sample, if there are many points: k passes over a million would take longer than the clustering
    pool = data
    most = DRAWN_FOR_EACH_CENTRE * k
    if len(data) > most:
        pool = data[generator.choice(len(data), most, replace=False)]

    centres = [pool[generator.integers(len(pool))]]
    distances = squared_distances(pool, centres[0])
    while len(centres) < k and distances.sum() > 0:
        drawn = generator.choice(len(pool), p=distances / distances.sum())
        centres.append(pool[drawn])
        distances = np.minimum(distances, squared_distances(pool, pool[drawn]))
    return np.stack(centres)


def squared_distances(points: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """[n] of each point to the centre."""
    return ((points - centre) ** 2).sum(1)


def nearest_centres(data: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """[n] the nearest centre of each point, the first of equals."""
    step = max(1, CELLS // len(centres))
    squares = (centres**2).sum(1)
    parts = []
    for start in range(0, len(data), step):
        products = data[start : start + step] @ centres.T
        parts.append((squares - 2 * products).argmin(1))
    return np.concatenate(parts)


def finite_vectors(vectors: ArrayLike) -> np.ndarray:
    """[n, d] vectors as an array of finite numbers."""
    data = np.asarray(vectors, np.float64)
    if data.ndim != 2 or not np.isfinite(data).all():
        raise InputError(f"Vectors to cluster are a table [n, d] of finite numbers, not {data.shape}.")
    return data
