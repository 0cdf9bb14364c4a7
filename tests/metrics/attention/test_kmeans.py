"""Clusters of vectors that are clearly grouped, and of few points."""

from __future__ import annotations

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.metrics.attention import (
    clusters,
    mutual_information,
)
from tests.helpers.random_arrays import blobs


@pytest.mark.parametrize("batch", [None, 64])
def test_clusters_of_clear_groups(generator, batch):
    label, data = blobs(generator)
    found = clusters(data, 6, batch=batch, seed=2)
    assert mutual_information(label, found) == pytest.approx(mutual_information(label, label))
    np.testing.assert_array_equal(found, clusters(data, 6, batch=batch, seed=2))
    moved = clusters(data + 1e10, 6, batch=batch, seed=2)  # far from 0
    assert mutual_information(found, moved) == pytest.approx(mutual_information(found, found))


def test_clusters_are_nearest_to_their_own_mean(generator):
    """What k-means converges to: every point is in the cluster whose mean is nearest."""
    data = generator.normal(size=(200, 3))
    found = clusters(data, 5, passes=1000)
    means = np.stack([data[found == c].mean(0) for c in range(5)])
    distance = ((data[:, None] - means) ** 2).sum(-1)
    np.testing.assert_array_equal(distance.argmin(1), found)


def test_clusters_of_few_points(generator):
    assert len(set(clusters(np.repeat([[1.0, 2.0], [3.0, 4.0]], 10, 0), 5).tolist())) == 2
    assert clusters([[1.0]], 3).tolist() == [0]
    with pytest.raises(InputError):
        clusters(np.zeros((0, 2)), 2)
    with pytest.raises(InputError):
        clusters([1.0, 2.0], 2)
