"""Random distributions and groups of points."""

from __future__ import annotations


def sparse(generator, *shape):
    """Random distributions of which some weights are exactly 0."""
    weights = generator.random(shape) * (generator.random(shape) < 0.6)
    weights[..., 0] += 0.01
    return weights / weights.sum(-1, keepdims=True)


def blobs(generator, n=600, k=6, width=8):
    centres = 20 * generator.normal(size=(k, width))
    label = generator.integers(0, k, n)
    return label, centres[label] + generator.normal(size=(n, width))
