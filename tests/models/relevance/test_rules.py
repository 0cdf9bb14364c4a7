"""Rules of relevance, one at a time, by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raison.models.relevance import rules
from raison.testing.precision import Float64


@pytest.fixture(autouse=True)
def precise():
    with Float64():
        yield


def pulled(rule, function, *args):
    signals = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.requires_grad]
    result = rule(function, args, {})
    with torch.no_grad():
        assert torch.allclose(result, function(*args))
    return lambda relevance: torch.autograd.grad(result, signals, relevance, retain_graph=True)


def leaf(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def test_linear_rule_by_hand():
    x, weight = leaf([[1.0, -2.0]]), torch.tensor([[1.0, 1.0], [2.0, -1.0]], dtype=torch.float64)
    (found,) = pulled(
        rules.linear_rule, torch.nn.functional.linear, x, weight, torch.ones(2, dtype=torch.float64)
    )(torch.tensor([[3.0, 8.0]], dtype=torch.float64))
    # row 0: contributions 1 and −2, so all 3 to x_0; row 1: 2 and 2, so 4 and 4; the bias takes nothing
    assert torch.allclose(found, torch.tensor([[7.0, 4.0]], dtype=torch.float64))
    (lost,) = pulled(
        rules.linear_rule, torch.nn.functional.linear, leaf([[1.0, 3.0]]), -weight[:1].abs()
    )(torch.tensor([[8.0]], dtype=torch.float64))
    assert torch.allclose(
        lost, torch.tensor([[2.0, 6.0]], dtype=torch.float64)
    )  # nothing positive: by size


def test_addition_rule_by_hand():
    a, b = leaf([[1.0, 2.0], [1.0, 1.0]]), leaf([[3.0, -1.0], [-1.0, 1.0]])
    r_a, r_b = pulled(rules.addition_rule, torch.add, a, b)(
        torch.tensor([[4.0, 1.0], [5.0, 6.0]], dtype=torch.float64)
    )
    # example 0: shares (1, 2) and (3, −1), totals 3 and 2 of 5; example 1: a + b = 0 in the first place gives nothing
    assert torch.allclose(r_a[0], torch.tensor([1.0, 2.0], dtype=torch.float64))
    assert torch.allclose(r_b[0], torch.tensor([3.0, -1.0], dtype=torch.float64))
    assert torch.isfinite(r_a).all() and torch.isfinite(r_b).all()
    assert torch.allclose(r_a[1].sum() + r_b[1].sum(), torch.tensor(11.0, dtype=torch.float64))
    r_a, r_b = pulled(rules.addition_rule, torch.sub, leaf([[6.0]]), leaf([[2.0]]))(
        torch.tensor([[8.0]], dtype=torch.float64)
    )
    assert (
        torch.allclose(r_a + r_b, torch.tensor([[8.0]], dtype=torch.float64)) and float(r_a) == 6.0
    )  # |12| : |−4|


def test_product_rules_by_hand():
    a, b = leaf([[[1.0, 2.0]]]), leaf([[[3.0], [4.0]]])  # z = 11
    r_a, r_b = pulled(rules.product_of_signals_rule, torch.matmul, a, b)(
        torch.tensor([[[22.0]]], dtype=torch.float64)
    )
    assert torch.allclose(r_a, torch.tensor([[[3.0, 8.0]]], dtype=torch.float64))
    assert torch.allclose(r_b, torch.tensor([[[3.0], [8.0]]], dtype=torch.float64))
    halves = pulled(rules.half_each_rule, torch.mul, leaf([[2.0]]), leaf([[5.0]]))(
        torch.tensor([[3.0]], dtype=torch.float64)
    )
    assert [float(half) for half in halves] == [1.5, 1.5]


def test_pooling_rule_by_hand():
    x = leaf([[[1.0], [3.0]]])
    (found,) = pulled(rules.pooling_rule, torch.mean, x, 1)(
        torch.tensor([[8.0]], dtype=torch.float64)
    )
    assert torch.allclose(found, torch.tensor([[[2.0], [6.0]]], dtype=torch.float64))


def test_norm_rule_is_linear_in_its_input():
    x = leaf(np.random.default_rng(0).normal(size=(2, 5)).tolist())
    weight = torch.arange(1.0, 6.0, dtype=torch.float64)
    pull = pulled(rules.norm_as_given_rule, torch.nn.functional.layer_norm, x, (5,), weight)
    jacobian = torch.stack(
        [pull(torch.eye(5, dtype=torch.float64)[i].expand(2, 5))[0] for i in range(5)], 1
    )  # [2 i j]
    result = torch.nn.functional.layer_norm(x.detach(), (5,), weight)
    assert torch.allclose(
        torch.einsum("bij,bj->bi", jacobian, x.detach()), result, atol=1e-4
    )  # up to its ε
