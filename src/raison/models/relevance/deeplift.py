"""Rescale rules (DeepLIFT): multipliers Δout/Δin between an input and its reference, through every function exactly.

The input and its reference run together, as the two halves of one batch. The multiplier of an element-wise function is
Δy/Δx; of a product ab it is the mean of the other factor, since Δ(ab) = ½(b+b')Δa + ½(a+a')Δb; linear functions keep
their weights; softmax and layer norms are taken apart into such steps. So contributions add up to f(x) − f(x')
everywhere, which treating softmax and norms as linear at their output would not give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from raison.models.relevance.rules import fitted, plainly, rewired

__all__ = ["between", "log_sum", "normed", "product", "quotient", "soft"]

NEAR = 1e-6  # relative: differences below are too small to divide by, the derivative in the middle takes their place


def halves(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of the input and those of the reference."""
    return tensor.detach().tensor_split(2)  # type: ignore[return-value]


def only(gradient: torch.Tensor) -> torch.Tensor:
    """Multipliers of the input; the reference has none."""
    return torch.cat([gradient, torch.zeros_like(gradient)])


def secant(y: torch.Tensor, x: torch.Tensor, slope: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Δy/Δx of an element-wise function; `slope` is its derivative, used in the middle where Δx vanishes."""
    (here, there), (new, old) = halves(x), halves(y)
    change = here - there
    far = change.abs() > NEAR * (here.abs() + there.abs()) + torch.finfo(x.dtype).tiny
    ratio = (new - old) / torch.where(far, change, 1.0)
    return ratio if bool(far.all()) else torch.where(far, ratio, slope((here + there) / 2))


def between(function: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
    """An element-wise function: tanh, an activation, a power, a root."""
    place = next(i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.requires_grad)
    x, result = args[place], plainly(function, args, kwargs)

    def slope(middle: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            leaf = middle.requires_grad_(True)
            y = function(*args[:place], leaf, *args[place + 1 :], **kwargs)
            return torch.autograd.grad(y.sum(), leaf)[0]

    return rewired(result, lambda g: (only(g.tensor_split(2)[0] * secant(result, x, slope)),), x)


def product(function: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
    """A product of two signals, element-wise or of matrices: each is multiplied by the mean of the other."""
    a, b = args[:2]
    result = plainly(function, args, kwargs)
    matrices = getattr(function, "__name__", "").strip("_") in ("matmul", "bmm", "rmatmul")

    def mean(tensor: torch.Tensor) -> torch.Tensor:
        return sum(halves(tensor)) / 2 if len(tensor) > 1 else tensor.detach()  # type: ignore[return-value]

    def pull(gradient: torch.Tensor) -> tuple:
        g, left, right = gradient.tensor_split(2)[0], mean(a), mean(b)
        found = (g @ right.mT, left.mT @ g) if matrices else (g * right, g * left)
        return tuple(only(fitted(f, h.shape)) for f, h in zip(found, (left, right), strict=True))

    return rewired(result, pull, a, b)


def quotient(function: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
    """a / b of two signals: a times 1/b."""
    a, b = args[:2]
    inverse = between(torch.reciprocal, (b,), {})
    return product(torch.mul, (a, inverse), {})


def shares(x: torch.Tensor, axis: int) -> torch.Tensor:
    """w with Σ_j w_j Δx_j = ΔL for L = ln Σ exp x: through exp, sum and logarithm, scaled so that nothing overflows."""
    x = x.detach().clamp(min=torch.finfo(x.dtype).min / 4)  # a row that may see nothing has only the lowest number
    total = x.logsumexp(axis, keepdim=True)
    top = torch.stack(halves(total)).amax(0)
    top = torch.cat([top, top])
    powers, sums = (x - top).exp(), (total - top).exp()
    slope = lambda middle: (middle - top[: len(middle)]).exp()  # noqa: E731
    return secant(powers, x, slope) / secant(sums, total, slope)


def soft(function: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
    """softmax: s = exp(u), u = x − L, L = ln Σ exp x, so that Δs = Δs/Δu · (Δx − ΔL)."""
    x = args[0]
    axis = kwargs.get("dim", args[1] if len(args) > 1 else -1)
    result = plainly(function, args, kwargs)

    def pull(gradient: torch.Tensor) -> tuple:
        slope = secant(result, x.detach() - x.detach().logsumexp(axis, keepdim=True), torch.exp)
        inner = gradient.tensor_split(2)[0] * slope
        return (only(inner - shares(x, axis) * inner.sum(axis, keepdim=True)),)

    return rewired(result, pull, x)


def log_sum(function: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
    """logsumexp: ln Σ exp x."""
    x = args[0]
    axis = kwargs.get("dim", args[1] if len(args) > 1 else -1)
    result = plainly(function, args, kwargs)

    def pull(gradient: torch.Tensor) -> tuple:
        g = gradient.tensor_split(2)[0]
        return (only((g if g.dim() == x.dim() else g.unsqueeze(axis)) * shares(x, axis)),)

    return rewired(result, pull, x)


def normed(function: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
    """layer_norm: c · q^(−½) · γ with c = x − mean and q = mean c² + ε; Δ(q^−½) = −Δq / (√q √q' (√q + √q'))."""
    x, shape = args[:2]
    weight = kwargs.get("weight", args[2] if len(args) > 2 else None)
    eps = kwargs.get("eps", args[4] if len(args) > 4 else 1e-5)
    result = plainly(function, args, kwargs)
    axes = tuple(range(-len(shape), 0))
    size = x[0].numel() // x[0].sum(axes).numel()

    def pull(gradient: torch.Tensor) -> tuple:
        g = gradient.tensor_split(2)[0]
        g = g if weight is None else g * weight
        c, d = (half - half.mean(axes, keepdim=True) for half in halves(x))
        q, r = ((half.square().mean(axes, keepdim=True) + eps).sqrt() for half in (c, d))
        scale = (g * (c + d) / 2).sum(axes, keepdim=True) * (-1 / (q * r * (q + r)))
        found = g * (1 / q + 1 / r) / 2 + scale * (c + d) / size
        return (only(found - found.mean(axes, keepdim=True)),)

    return rewired(result, pull, x)
