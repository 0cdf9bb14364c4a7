"""Rules of relevance: what each function of a forward pass does with the relevance that reaches its output.

A rule replaces the backward step of one function: given relevance (or a modified gradient) of the result, it says what
each argument gets. Rules belong to functions, not to modules, so residual additions, gated products and tanh heads are
reached in every family without copies of modelling files (methods.md of Chefer 2021b, Song et al. 2024, Achtibat 2024).

Relevance rules (R): `linear`, `added`, `multiplied`, `halved`, `passed`, `summed`. Gradient rules (g): `ratio`,
`standardised`, `halved`. `constant` serves both: what it returns is no signal any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = [
    "Rule", "added", "constant", "half_gradients", "halved", "linear", "multiplied", "own", "passed", "ratio",
    "rewired", "standardised", "summed",
]  # fmt: skip

Rule = Callable[[Any, tuple, dict[str, Any]], Any]  # (function, args, kwargs) -> result
SMALL = 1e-9  # denominators are kept at least this far from zero, as in the reference code of Chefer et al.


class Rewired(torch.autograd.Function):
    """A result whose backward step is `pull`: from the relevance of the result to that of each signal."""

    @staticmethod
    def forward(ctx: Any, result: torch.Tensor, pull: Any, *signals: torch.Tensor) -> torch.Tensor:
        ctx.pull = pull
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *relevance: torch.Tensor) -> Any:
        return (None, None, *ctx.pull(relevance[0]))


def rewired(result: torch.Tensor, pull: Callable[[torch.Tensor], tuple], *signals: torch.Tensor) -> torch.Tensor:
    """`result` with another backward step; `pull` gives one tensor for each signal, in its shape."""
    return Rewired.apply(result.detach(), pull, *signals)


def plainly(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    with torch.no_grad():
        return function(*args, **kwargs)


def divided(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a / b with |b| at least SMALL, and 0 where b is 0."""
    floor = torch.where(b < 0, -SMALL, SMALL).to(b)
    return torch.where(b == 0, 0.0, a / torch.where(b.abs() < SMALL, floor, b))


def fitted(relevance: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Summed over the axes along which an argument of this shape was repeated."""
    return relevance if relevance.shape == shape else relevance.sum_to_size(*shape)


def weight_of(function: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor, Any]:
    """x, W [in out] and the bias of an affine function: linear, addmm, or a product with a constant."""
    name = getattr(function, "__name__", "")
    if name == "addmm":
        return args[1], args[2], args[0]
    if name == "linear":
        bias = args[2] if len(args) > 2 else kwargs.get("bias")
        return args[0], args[1].mT, bias
    return args[0], args[1], None


def linear(function: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
    """α1β0: R_j = Σ_i (x_j w_ij)⁺ / Σ_j' (x_j' w_ij')⁺ · R_i; the bias takes nothing.

    (xw)⁺ = ½(xw + |xw|), so that two products with W and two with |W| are enough. An output without any positive
    contribution gives its relevance to |x w| instead of losing it.
    """
    result = plainly(function, args, kwargs)
    x, weight, bias = weight_of(function, args, kwargs)
    if not x.requires_grad:  # constant @ signal
        turned = linear(torch.matmul, (weight.mT, x.mT), {})
        return turned.mT
    plain = result if bias is None else result - bias

    def pull(relevance: torch.Tensor) -> tuple:
        size, steep = x.detach().abs(), weight.abs()
        total = size @ steep
        positive = (plain + total) / 2
        sure = positive > 16 * torch.finfo(total.dtype).eps * total
        share = torch.where(sure, relevance / positive, 0.0) / 2
        spread = share + torch.where(sure, 0.0, divided(relevance, total))
        found = x.detach() * (share @ weight.mT) + size * (spread @ steep.mT)
        return (fitted(found, x.shape),)

    return rewired(result, pull, x)


def added(function: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
    """a + b (or a − b): each gets its share of the sum, then each side is rescaled, per example.

    r_a = a·R/(a+b); Σr_a := |Σr_a| / (|Σr_a| + |Σr_b|) · ΣR. The reference code sums over the batch as well, which lets
    neighbours change a result; here sums are per example.
    """
    a, b = args[:2]
    result = plainly(function, args, kwargs)
    sign = -1.0 if "sub" in getattr(function, "__name__", "") else 1.0

    def pull(relevance: torch.Tensor) -> tuple:
        share = divided(relevance, result)
        sides = [a.detach() * share, sign * b.detach() * share]
        parts = rescaled(sides, relevance)
        return tuple(fitted(part, side.shape) for part, side in zip(parts, (a, b), strict=True))

    return rewired(result, pull, a, b)


def rescaled(parts: list[torch.Tensor], relevance: torch.Tensor) -> list[torch.Tensor]:
    """Parts whose totals are in proportion to their sizes and add up to that of `relevance`, per example."""
    axes = tuple(range(1, relevance.dim()))
    totals = torch.stack([part.sum(axes) for part in parts])  # [k b]
    weights = divided(totals.abs(), totals.abs().sum(0))
    factors = divided(weights * relevance.sum(axes), totals)
    return [part * factor.reshape(-1, *[1] * len(axes)) for part, factor in zip(parts, factors, strict=True)]


def summed(function: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
    """A sum or mean over an axis (pooling): the rule of `added` with as many sides as there are terms."""
    x = args[0]
    result = plainly(function, args, kwargs)
    axis = args[1] if len(args) > 1 else kwargs.get("dim")
    axis = axis[0] if isinstance(axis, (tuple, list)) and len(axis) == 1 else axis
    keep = kwargs.get("keepdim", args[2] if len(args) > 2 else False)
    if not isinstance(axis, int) or axis % x.dim() == 0:
        raise NotImplementedError("a sum over the whole tensor or over the batch has no rule")

    def pull(relevance: torch.Tensor) -> tuple:
        relevance = relevance if keep else relevance.unsqueeze(axis)
        parts = x.detach() * divided(relevance, x.detach().sum(axis, keepdim=True))
        others = tuple(i for i in range(1, x.dim()) if i != axis % x.dim())
        totals = parts.sum(others, keepdim=True)  # [b .. terms ..]
        sizes = totals.abs()
        whole = relevance.sum(tuple(range(1, x.dim())), keepdim=True)
        factors = divided(divided(sizes, sizes.sum(axis, keepdim=True)) * whole, totals)
        return (parts * factors,)

    return rewired(result, pull, x)


def multiplied(function: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
    """Z = AB of two signals: R_A = ½ A ⊙ ((R ⊘ Z) Bᵀ), R_B = ½ B ⊙ (Aᵀ (R ⊘ Z))."""
    a, b = args[:2]
    result = plainly(function, args, kwargs)

    def pull(relevance: torch.Tensor) -> tuple:
        share = divided(relevance, result) / 2
        left, right = a.detach(), b.detach()
        return fitted(left * (share @ right.mT), a.shape), fitted(right * (left.mT @ share), b.shape)

    return rewired(result, pull, a, b)


def passed(function: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
    """Identity: what reaches the result reaches its one signal unchanged (softmax, activations, norms, scaling)."""
    signal = next(a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor) and a.requires_grad)
    result = plainly(function, args, kwargs)
    return rewired(result, lambda relevance: (fitted(relevance, signal.shape),), signal)


def halved(function: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
    """Element-wise product of two signals: half of the relevance to each."""
    a, b = args[:2]
    result = plainly(function, args, kwargs)
    return rewired(result, lambda r: (fitted(r / 2, a.shape), fitted(r / 2, b.shape)), a, b)


def constant(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The result is no signal: statistics of a norm, attention weights where they are taken as given."""
    return plainly(function, args, kwargs)


# -- rules for gradients, whose product with the input is the relevance ------------------------------------------------


def own(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Its own gradient: linear functions, whose gradient times input is the ε-rule with ε = 0."""
    return function(*args, **kwargs)


def half_gradients(function: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
    """A product of two signals, element-wise or of matrices: each gets half of its own gradient."""
    result = function(*args, **kwargs)
    return rewired(result, lambda g: (g / 2,), result)


def ratio(function: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
    """An element-wise activation: its gradient is y / x, so that relevance passes unchanged."""
    signal = next(a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor) and a.requires_grad)
    result = plainly(function, args, kwargs)
    return rewired(result, lambda g: (g * divided(result, signal.detach()),), signal)


def standardised(function: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
    """A layer norm with its standard deviation taken as given: what is left is linear."""
    x, shape = args[:2]
    weight = kwargs.get("weight", args[2] if len(args) > 2 else None)
    eps = kwargs.get("eps", args[4] if len(args) > 4 else 1e-5)
    result = plainly(function, args, kwargs)
    axes = tuple(range(-len(shape), 0))

    def pull(gradient: torch.Tensor) -> tuple:
        scale = (x.detach().var(axes, unbiased=False, keepdim=True) + eps).rsqrt()
        found = (gradient if weight is None else gradient * weight) * scale
        return (found - found.mean(axes, keepdim=True),)

    return rewired(result, pull, x)
