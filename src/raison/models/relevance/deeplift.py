"""Rescale rules (DeepLIFT): multipliers Δout/Δin between an input and its reference, through every function exactly.

The input and its reference run together, as the two halves of one batch. The multiplier of an element-wise function is
Δy/Δx; of a product ab it is the mean of the other factor, since Δ(ab) = ½(b+b')Δa + ½(a+a')Δb; linear functions keep
their weights; softmax and layer norms are taken apart into such steps. So contributions add up to f(x) − f(x')
everywhere, which treating softmax and norms as linear at their output would not give.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from raison.models.attention.products import Arguments, Function, Options, name_of_product_function
from raison.models.relevance.rules import (
    argument_of_function,
    is_signal,
    sum_relevance_to_shape,
    with_backward_rule,
    without_backward_rule,
)

__all__ = [
    "rescale_elementwise",
    "rescale_layer_norm",
    "rescale_logsumexp",
    "rescale_product",
    "rescale_quotient",
    "rescale_softmax",
]

NEAR = 1e-6  # relative: differences below are too small to divide by, the derivative in the middle takes their place


def input_and_reference_rows(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of the input and those of the reference."""
    here, there = tensor.detach().tensor_split(2)
    return here, there


def multipliers_of_input(gradient: torch.Tensor) -> torch.Tensor:
    """The multipliers of the input's rows; the reference has none."""
    multipliers, _ = gradient.tensor_split(2)
    return multipliers


def with_zeros_for_reference(multipliers: torch.Tensor) -> torch.Tensor:
    """Multipliers of the input, and zeros for the reference."""
    zeros = torch.zeros_like(multipliers)
    return torch.cat([multipliers, zeros])


def secant_multiplier(
    y: torch.Tensor, x: torch.Tensor, slope: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Δy/Δx of an element-wise function; `slope` is its derivative, used in the middle where Δx vanishes."""
    here, there = input_and_reference_rows(x)
    new, old = input_and_reference_rows(y)
    change = here - there
    size = here.abs() + there.abs()
    tiny = torch.finfo(x.dtype).tiny
    far = change.abs() > NEAR * size + tiny
    divisor = torch.where(far, change, 1.0)
    ratio = (new - old) / divisor
    if bool(far.all()):
        return ratio
    middle = (here + there) / 2
    return torch.where(far, ratio, slope(middle))


def rescale_elementwise(function: Function, args: Arguments, kwargs: Options) -> torch.Tensor:
    """An element-wise function: tanh, an activation, a power, a root."""
    place = next(place for place, value in enumerate(args) if is_signal(value))
    x = args[place]
    result = without_backward_rule(function, args, kwargs)

    def slope(middle: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            leaf = middle.requires_grad_(True)
            own_args = list(args)
            own_args[place] = leaf
            y = function(*own_args, **kwargs)
            (derivative,) = torch.autograd.grad(y.sum(), leaf)
            return derivative

    def pull(gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        g = multipliers_of_input(gradient)
        own = g * secant_multiplier(result, x, slope)
        return (with_zeros_for_reference(own),)

    return with_backward_rule(result, pull, x)


def rescale_product(function: Function, args: Arguments, kwargs: Options) -> torch.Tensor:
    """A product of two signals, element-wise or of matrices: each is multiplied by the mean of the other."""
    a, b = args[:2]
    result = without_backward_rule(function, args, kwargs)
    of_matrices = name_of_product_function(function) in ("matmul", "bmm")

    def pull(gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        g = multipliers_of_input(gradient)
        left = mean_of_input_and_reference(a)
        right = mean_of_input_and_reference(b)
        if of_matrices:
            for_left = g @ right.mT
            for_right = left.mT @ g
        else:
            for_left = g * right
            for_right = g * left
        own_left = sum_relevance_to_shape(for_left, left.shape)
        own_right = sum_relevance_to_shape(for_right, right.shape)
        of_left = with_zeros_for_reference(own_left)
        of_right = with_zeros_for_reference(own_right)
        return of_left, of_right

    return with_backward_rule(result, pull, a, b)


def mean_of_input_and_reference(tensor: torch.Tensor) -> torch.Tensor:
    """The mean of input and reference; a tensor that both share is its own."""
    if len(tensor) < 2:
        return tensor.detach()
    here, there = input_and_reference_rows(tensor)
    return (here + there) / 2


def rescale_quotient(function: Function, args: Arguments, kwargs: Options) -> torch.Tensor:
    """a / b of two signals: a times 1/b."""
    a, b = args[:2]
    inverse = rescale_elementwise(torch.reciprocal, (b,), {})
    return rescale_product(torch.mul, (a, inverse), {})


def rescale_shares_of_logsumexp(x: torch.Tensor, axis: int) -> torch.Tensor:
    """w with Σ_j w_j Δx_j = ΔL for L = ln Σ exp x: through exp, sum and logarithm, scaled so that nothing overflows."""
    # a row that may see nothing has only the lowest number
    lowest = torch.finfo(x.dtype).min
    x = x.detach().clamp(min=lowest / 4)
    total = x.logsumexp(axis, keepdim=True)
    halves = torch.stack(input_and_reference_rows(total))
    top = halves.amax(0)
    tops = torch.cat([top, top])

    def slope(middle: torch.Tensor) -> torch.Tensor:
        own_tops = tops[: len(middle)]
        return (middle - own_tops).exp()

    powers = (x - tops).exp()
    sums = (total - tops).exp()
    of_powers = secant_multiplier(powers, x, slope)
    of_sum = secant_multiplier(sums, total, slope)
    return of_powers / of_sum


def rescale_softmax(function: Function, args: Arguments, kwargs: Options) -> torch.Tensor:
    """softmax: s = exp(u), u = x − L, L = ln Σ exp x, so that Δs = Δs/Δu · (Δx − ΔL)."""
    x = args[0]
    axis = argument_of_function(args, kwargs, 1, "dim", -1)
    result = without_backward_rule(function, args, kwargs)

    def pull(gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        plain = x.detach()
        logs = plain - plain.logsumexp(axis, keepdim=True)  # u
        g = multipliers_of_input(gradient)
        inner = g * secant_multiplier(result, logs, torch.exp)
        total = inner.sum(axis, keepdim=True)
        through_log = rescale_shares_of_logsumexp(x, axis) * total
        own = inner - through_log
        return (with_zeros_for_reference(own),)

    return with_backward_rule(result, pull, x)


def rescale_logsumexp(function: Function, args: Arguments, kwargs: Options) -> torch.Tensor:
    """logsumexp: ln Σ exp x."""
    x = args[0]
    axis = argument_of_function(args, kwargs, 1, "dim", -1)
    result = without_backward_rule(function, args, kwargs)

    def pull(gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        g = multipliers_of_input(gradient)
        if g.dim() < x.dim():
            g = g.unsqueeze(axis)
        own = g * rescale_shares_of_logsumexp(x, axis)
        return (with_zeros_for_reference(own),)

    return with_backward_rule(result, pull, x)


def rescale_layer_norm(function: Function, args: Arguments, kwargs: Options) -> torch.Tensor:
    """layer_norm: c · q^(−½) · γ with c = x − mean and q = mean c² + ε; Δ(q^−½) = −Δq / (√q √q' (√q + √q'))."""
    x, shape = args[:2]
    weight = argument_of_function(args, kwargs, 2, "weight")
    eps = argument_of_function(args, kwargs, 4, "eps", 1e-5)
    result = without_backward_rule(function, args, kwargs)
    axes = tuple(range(-len(shape), 0))
    size = math.prod(shape)

    def centred(half: torch.Tensor) -> torch.Tensor:
        return half - half.mean(axes, keepdim=True)

    def deviation(c: torch.Tensor) -> torch.Tensor:
        variance = c.square().mean(axes, keepdim=True)
        root: torch.Tensor = (variance + eps).sqrt()
        return root

    def pull(gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        g = multipliers_of_input(gradient)
        if weight is not None:
            g = g * weight
        here, there = input_and_reference_rows(x)
        c = centred(here)
        d = centred(there)
        q = deviation(c)
        r = deviation(d)

        slope_of_root = -1 / (q * r * (q + r))
        for_root = g * (c + d) / 2
        scale = for_root.sum(axes, keepdim=True) * slope_of_root
        through_centred = g * (1 / q + 1 / r) / 2
        through_deviation = scale * (c + d) / size
        change = through_centred + through_deviation
        own = change - change.mean(axes, keepdim=True)
        return (with_zeros_for_reference(own),)

    return with_backward_rule(result, pull, x)
