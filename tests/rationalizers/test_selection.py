"""Which tokens are kept: drawn in training, decided in evaluation; and gradients of seeing one."""

from __future__ import annotations

import math

import pytest
import torch

from raison.rationalizers.hiding_attention import attention_that_hides, seeing
from raison.rationalizers.selection import decide_mask, sample_mask
from tests.helpers.small_rationalizers import (
    encoder_of,
)


def test_a_draw_is_hard_and_its_gradient_soft():
    logits = torch.randn(
        4, 9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    ).requires_grad_()
    torch.manual_seed(3)
    mask = sample_mask(logits)
    torch.manual_seed(3)
    noise = -torch.log(-torch.log(torch.rand_like(logits)))
    soft = torch.softmax(logits + noise, -1)[..., 1]
    assert torch.equal(mask.detach(), (soft > 0.5).double())
    torch.testing.assert_close(
        torch.autograd.grad(mask.sum(), logits, retain_graph=True)[0],
        torch.autograd.grad(soft.sum(), logits)[0],
    )
    torch.manual_seed(0)
    probabilities = torch.tensor([0.0, math.log(3)]).expand(20_000, 1, 2)  # keeps 3 of 4
    assert float(sample_mask(probabilities).mean()) == pytest.approx(0.75, abs=0.02)


def test_the_gradient_of_seeing_a_token_is_the_whole_step():
    """For a hidden token: what attention would give with it, minus what it gives; for a seen one: the slope."""
    encoder, _ = encoder_of("bert")
    module = encoder.encoder.layer[0].attention.self
    random = torch.Generator().manual_seed(0)
    query, key, value = (
        torch.randn(1, 2, 5, 4, dtype=torch.float64, generator=random) for _ in range(3)
    )

    def attended(seen):
        with seeing(seen):
            return attention_that_hides(module.eval(), query, key, value, None, scaling=0.5)[0]

    seen = torch.tensor([[1.0, 0.0, 1.0, 0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(1, 5, 2, 4, dtype=torch.float64, generator=random)
    (gradient,) = torch.autograd.grad((attended(seen) * upstream).sum(), seen)
    plain = attended(seen.detach())
    for t in range(5):
        if seen[0, t] == 0:
            more = seen.detach().clone()
            more[0, t] = 1
            expected = ((attended(more) - plain) * upstream).sum()
        else:
            step = torch.zeros_like(seen)
            step[0, t] = 1e-6
            expected = ((plain - attended(seen.detach() - step)) / 1e-6 * upstream).sum()
        assert float(gradient[0, t]) == pytest.approx(float(expected), rel=1e-4, abs=1e-6)


def test_the_gradient_of_weights_between_0_and_1_is_their_slope():
    encoder, _ = encoder_of("bert")
    module = encoder.encoder.layer[0].attention.self.eval()
    random = torch.Generator().manual_seed(0)
    query, key, value = (
        torch.randn(1, 2, 4, 4, dtype=torch.float64, generator=random) for _ in range(3)
    )
    upstream = torch.randn(1, 4, 2, 4, dtype=torch.float64, generator=random)

    def worth(seen):
        with seeing(seen):
            return (
                attention_that_hides(module, query, key, value, None, scaling=0.5)[0] * upstream
            ).sum()

    weights = torch.tensor([[0.3, 0.9, 0.05, 0.6]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(worth, weights)


def test_the_likeliest_token_stays_where_all_would_go():
    margin = torch.tensor(
        [[-1.0, -3.0, -0.5, 2.0], [1.0, -1.0, -1.0, -1.0], [-1.0, -1.0, -1.0, -1.0]]
    )
    among = torch.tensor([[True, True, True, False], [True] * 4, [False] * 4])
    kept = decide_mask(margin, among, True)
    assert kept.tolist() == [[False, False, True, False], [True, False, False, False], [False] * 4]
    assert decide_mask(margin, among, False).sum() == 1
