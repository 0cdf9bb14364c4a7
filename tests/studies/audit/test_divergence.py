"""Divergences with slopes, beside those of the metrics."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raison.metrics.attention import (
    jensen_shannon,
    total_variation,
)
from raison.studies.audit.divergence import jsd, tvd
from raison.training.seeds import seeded_generator


def test_divergences_are_those_of_the_metrics():
    p, q = (torch.rand(4, 6, generator=seeded_generator(k), dtype=torch.float64) for k in (1, 2))
    p[0, :3] = 0
    q[1, 2:] = 0
    p, q = p / p.sum(-1, keepdim=True), q / q.sum(-1, keepdim=True)
    np.testing.assert_allclose(jsd(p, q).numpy(), jensen_shannon(p.numpy(), q.numpy()), atol=1e-12)
    np.testing.assert_allclose(tvd(p, q).numpy(), total_variation(p.numpy(), q.numpy()), atol=1e-12)
    one, two = torch.eye(6, dtype=torch.float64)[0], torch.eye(6, dtype=torch.float64)[1]
    assert float(jsd(one, two)) == pytest.approx(np.log(2)) and float(jsd(one, one)) == 0
    leaf = p.clone().requires_grad_()
    jsd(leaf, q).sum().backward()
    assert torch.isfinite(leaf.grad).all()
