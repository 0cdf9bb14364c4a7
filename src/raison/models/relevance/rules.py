"""Rules of relevance: what each function of a forward pass does with the relevance of its output, which it hands
back to its signals.

A rule replaces the backward step of one function: given relevance (or a modified gradient) of the result, it says what
each argument gets. Rules belong to functions, not to modules, so residual additions, gated products and tanh heads are
reached in every family without copies of modelling files (methods.md of Chefer 2021b, Song et al. 2024, Achtibat 2024).

Relevance rules (R): `linear_rule`, `addition_rule`, `product_of_signals_rule`, `half_each_rule`, `identity_rule`,
`pooling_rule`. Gradient rules (g): `own_gradient_rule`, `half_gradients_rule`, `ratio_rule`, `norm_as_given_rule`.
`constant_rule` serves both: its result is no signal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from raison.models.attention.products import Arguments, Function, Options, Result

__all__ = [
    "Pull",
    "Rule",
    "addition_rule",
    "argument_of_function",
    "constant_rule",
    "half_each_rule",
    "half_gradients_rule",
    "identity_rule",
    "is_signal",
    "linear_rule",
    "norm_as_given_rule",
    "only_signal",
    "own_gradient_rule",
    "pooling_rule",
    "product_of_signals_rule",
    "ratio_rule",
    "signals_in",
    "sum_relevance_to_shape",
    "tensors_in_arguments",
    "with_backward_rule",
    "without_backward_rule",
]  # fmt: skip

Rule = Callable[[Function, Arguments, Options], Result]
# of a result's relevance: what each signal gets
Pull = Callable[[torch.Tensor], tuple[torch.Tensor, ...]]
SMALL = 1e-9  # denominators are kept at least this far from zero, as in the reference code of Chefer et al.
UNSURE = 16  # units in the last place: a sum of positive parts below that may be rounding


# -- what a function is called with --------------------------------------------------------------------------


def argument_of_function(
    args: Arguments, kwargs: Options, place: int, name: str, default: Any = None
) -> Any:
    """An argument of a function, given by its place or by its name."""
    if len(args) > place:
        return args[place]
    return kwargs.get(name, default)


def tensors_in_arguments(values: Iterable[object]) -> Iterator[torch.Tensor]:
    """The tensors among values, also those in lists."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from tensors_in_arguments(value)


def is_signal(value: object) -> bool:
    """Whether an argument depends on the input."""
    return isinstance(value, torch.Tensor) and value.requires_grad


def signals_in(args: Arguments, kwargs: Options) -> list[torch.Tensor]:
    """The arguments that depend on the input: weights are frozen, so only those want a gradient."""
    return [
        value for value in tensors_in_arguments((*args, *kwargs.values())) if value.requires_grad
    ]


# -- backward steps ------------------------------------------------------------------------------------------


class Rewired(torch.autograd.Function):
    """A result whose backward step is `pull`: from the relevance of the result to that of each signal."""

    @staticmethod
    def forward(ctx: Any, result: torch.Tensor, pull: Pull, *signals: torch.Tensor) -> torch.Tensor:
        ctx.pull = pull
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *relevance: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return (None, None, *ctx.pull(relevance[0]))


def with_backward_rule(result: torch.Tensor, pull: Pull, *signals: torch.Tensor) -> torch.Tensor:
    """`result` with another backward step; `pull` gives one tensor for each signal, in its shape."""
    changed: torch.Tensor = Rewired.apply(result.detach(), pull, *signals)  # type: ignore[no-untyped-call]
    return changed


def without_backward_rule(function: Function, args: Arguments, kwargs: Options) -> Result:
    """What a function gives, without its own backward step."""
    with torch.no_grad():
        return function(*args, **kwargs)


def safe_relevance_quotient(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a / b with |b| at least SMALL, and 0 where b is 0."""
    floor = torch.where(b < 0, -SMALL, SMALL).to(b)
    safe = torch.where(b.abs() < SMALL, floor, b)
    return torch.where(b == 0, 0.0, a / safe)


def sum_relevance_to_shape(relevance: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Summed over the axes along which an argument of this shape was repeated."""
    if relevance.shape == shape:
        return relevance
    return relevance.sum_to_size(*shape)


def only_signal(args: Arguments, kwargs: Options) -> torch.Tensor:
    """The first argument that depends on the input."""
    return next(
        tensor for tensor in tensors_in_arguments((*args, *kwargs.values())) if tensor.requires_grad
    )


# -- rules for relevance -------------------------------------------------------------------------------------


def affine_parts_of_function(
    function: Function, args: Arguments, kwargs: Options
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """x, W [in out] and the bias of an affine function: linear, addmm, or a product with a constant."""
    name = getattr(function, "__name__", "")
    if name == "addmm":
        return args[1], args[2], args[0]
    if name == "linear":
        return args[0], args[1].mT, argument_of_function(args, kwargs, 2, "bias")
    return args[0], args[1], None


def linear_rule(function: Function, args: Arguments, kwargs: Options) -> torch.Tensor:
    """α1β0: R_j = Σ_i (x_j w_ij)⁺ / Σ_j' (x_j' w_ij')⁺ · R_i; the bias takes nothing.

    (xw)⁺ = ½(xw + |xw|), so that two products with W and two with |W| are enough. An output without any positive
    contribution gives its relevance to |x w| instead of losing it.
    """
    result = without_backward_rule(function, args, kwargs)
    x, weight, bias = affine_parts_of_function(function, args, kwargs)
    if not x.requires_grad:  # constant @ signal
        return linear_rule(torch.matmul, (weight.mT, x.mT), {}).mT
    without_bias = result if bias is None else result - bias

    def pull(relevance: torch.Tensor) -> tuple[torch.Tensor, ...]:
        size = x.detach().abs()
        steepness = weight.abs()
        total = size @ steepness
        positive = (without_bias + total) / 2
        sure = positive > UNSURE * torch.finfo(total.dtype).eps * total

        share = torch.where(sure, relevance / positive, 0.0) / 2
        unsure_share = torch.where(sure, 0.0, safe_relevance_quotient(relevance, total))
        signed_part = x.detach() * (share @ weight.mT)
        unsigned_part = size * ((share + unsure_share) @ steepness.mT)
        return (sum_relevance_to_shape(signed_part + unsigned_part, x.shape),)

    return with_backward_rule(result, pull, x)


def addition_rule(function: Function, args: Arguments, kwargs: Options) -> torch.Tensor:
    """a + b (or a − b): each gets its share of the sum, then each side is rescaled, per example.

    r_a = a·R/(a+b); Σr_a := |Σr_a| / (|Σr_a| + |Σr_b|) · ΣR. The reference code sums over the batch as well, which lets
    neighbours change a result; here sums are per example.
    """
    a, b = args[:2]
    result = without_backward_rule(function, args, kwargs)
    sign = -1.0 if "sub" in getattr(function, "__name__", "") else 1.0

    def pull(relevance: torch.Tensor) -> tuple[torch.Tensor, ...]:
        share = safe_relevance_quotient(relevance, result)
        shares = [a.detach() * share, sign * b.detach() * share]
        for_a, for_b = rescale_relevance_of_parts(shares, relevance)
        return sum_relevance_to_shape(for_a, a.shape), sum_relevance_to_shape(for_b, b.shape)

    return with_backward_rule(result, pull, a, b)


def rescale_relevance_of_parts(
    parts: list[torch.Tensor], relevance: torch.Tensor
) -> list[torch.Tensor]:
    """Parts whose totals are in proportion to their sizes and add up to that of `relevance`, per example."""
    axes = tuple(range(1, relevance.dim()))
    totals = torch.stack([part.sum(axes) for part in parts])  # [k b]
    weights = safe_relevance_quotient(totals.abs(), totals.abs().sum(0))
    factors = safe_relevance_quotient(weights * relevance.sum(axes), totals)
    per_example = (-1, *[1] * len(axes))
    return [part * factor.reshape(per_example) for part, factor in zip(parts, factors, strict=True)]


def pooling_rule(function: Function, args: Arguments, kwargs: Options) -> torch.Tensor:
    """A sum or mean over an axis (pooling): the rule of `addition_rule` with as many sides as there are terms."""
    x = args[0]
    result = without_backward_rule(function, args, kwargs)
    axis = argument_of_function(args, kwargs, 1, "dim")
    if isinstance(axis, (tuple, list)) and len(axis) == 1:
        (axis,) = axis
    keep_axis = argument_of_function(args, kwargs, 2, "keepdim", False)
    if not isinstance(axis, int) or axis % x.dim() == 0:
        raise NotImplementedError("a sum over the whole tensor or over the batch has no rule")

    def pull(relevance: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if not keep_axis:
            relevance = relevance.unsqueeze(axis)
        inputs = x.detach()
        parts = inputs * safe_relevance_quotient(relevance, inputs.sum(axis, keepdim=True))

        # each term is rescaled as a whole, by its share of all terms' sizes
        axes = list(range(1, x.dim()))
        whole = relevance.sum(axes, keepdim=True)
        axes.remove(axis % x.dim())
        totals = parts.sum(axes, keepdim=True)  # [b .. terms ..]
        sizes = totals.abs()
        weights = safe_relevance_quotient(sizes, sizes.sum(axis, keepdim=True))
        return (parts * safe_relevance_quotient(weights * whole, totals),)

    return with_backward_rule(result, pull, x)


def product_of_signals_rule(function: Function, args: Arguments, kwargs: Options) -> torch.Tensor:
    """Z = AB of two signals: R_A = ½ A ⊙ ((R ⊘ Z) Bᵀ), R_B = ½ B ⊙ (Aᵀ (R ⊘ Z))."""
    a, b = args[:2]
    result = without_backward_rule(function, args, kwargs)

    def pull(relevance: torch.Tensor) -> tuple[torch.Tensor, ...]:
        share = safe_relevance_quotient(relevance, result) / 2
        left, right = a.detach(), b.detach()
        for_left = left * (share @ right.mT)
        for_right = right * (left.mT @ share)
        return sum_relevance_to_shape(for_left, a.shape), sum_relevance_to_shape(for_right, b.shape)

    return with_backward_rule(result, pull, a, b)


def identity_rule(function: Function, args: Arguments, kwargs: Options) -> torch.Tensor:
    """Identity: what reaches the result reaches its one signal unchanged (softmax, activations, norms, scaling)."""
    signal = only_signal(args, kwargs)
    result = without_backward_rule(function, args, kwargs)
    return with_backward_rule(
        result, lambda relevance: (sum_relevance_to_shape(relevance, signal.shape),), signal
    )


def half_each_rule(function: Function, args: Arguments, kwargs: Options) -> torch.Tensor:
    """Element-wise product of two signals: half of the relevance to each."""
    a, b = args[:2]
    result = without_backward_rule(function, args, kwargs)

    def pull(relevance: torch.Tensor) -> tuple[torch.Tensor, ...]:
        half = relevance / 2
        return sum_relevance_to_shape(half, a.shape), sum_relevance_to_shape(half, b.shape)

    return with_backward_rule(result, pull, a, b)


def constant_rule(function: Function, args: Arguments, kwargs: Options) -> Result:
    """The result is no signal: statistics of a norm, attention weights where they are taken as given."""
    return without_backward_rule(function, args, kwargs)


# -- rules for gradients, whose product with the input is the relevance ------------------------------------------------


def own_gradient_rule(function: Function, args: Arguments, kwargs: Options) -> Result:
    """Its own gradient: linear functions, whose gradient times input is the ε-rule with ε = 0."""
    return function(*args, **kwargs)


def half_gradients_rule(function: Function, args: Arguments, kwargs: Options) -> torch.Tensor:
    """A product of two signals, element-wise or of matrices: each gets half of its own gradient."""
    result = function(*args, **kwargs)
    return with_backward_rule(result, lambda g: (g / 2,), result)


def ratio_rule(function: Function, args: Arguments, kwargs: Options) -> torch.Tensor:
    """An element-wise activation: its gradient is y / x, so that relevance passes unchanged."""
    signal = only_signal(args, kwargs)
    result = without_backward_rule(function, args, kwargs)
    return with_backward_rule(
        result, lambda g: (g * safe_relevance_quotient(result, signal.detach()),), signal
    )


def norm_as_given_rule(function: Function, args: Arguments, kwargs: Options) -> torch.Tensor:
    """A layer norm with its standard deviation taken as given: what is left is linear."""
    x, shape = args[:2]
    weight = argument_of_function(args, kwargs, 2, "weight")
    eps = argument_of_function(args, kwargs, 4, "eps", 1e-5)
    result = without_backward_rule(function, args, kwargs)
    axes = tuple(range(-len(shape), 0))

    def pull(gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        scale = (x.detach().var(axes, unbiased=False, keepdim=True) + eps).rsqrt()
        if weight is not None:
            gradient = gradient * weight
        scaled = gradient * scale
        return (scaled - scaled.mean(axes, keepdim=True),)

    return with_backward_rule(result, pull, x)
