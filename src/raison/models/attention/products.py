"""Finding the products of attention weights with values, in any family, while a forward pass runs.

Every attention ends in softmax(...) @ values. A function mode marks what comes out of a 4-D softmax, follows the mark
through casts and reshapes, and so meets the product, whether the family uses transformers' interface or not. What is
done there (relevance through chosen heads only, a value switched off, values looked at) is a subclass's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from raison.models.attention.call import Call, Seen

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "SHAPES",
    "Arguments",
    "Function",
    "Mark",
    "Options",
    "Products",
    "RecordedSoftmaxes",
    "Result",
    "ReweightedProducts",
    "name_of_product_function",
]

Function = Callable[..., Any]  # an operation of torch, as a function mode meets it
Arguments = tuple[Any, ...]
Options = dict[str, Any]
Result = Any  # what an operation gives: mostly a tensor

# what only moves, casts or cuts numbers: for a mark, and for a gradient, the result is the same tensor
SHAPES = frozenset(
    "view reshape transpose permute contiguous flatten unflatten squeeze unsqueeze expand movedim swapaxes clone "
    "float double half bfloat16 to type type_as view_as dropout".split()
)

# what a view may do to weights before it multiplies again
CHANGES = frozenset({"masked_fill", "getitem", "mul"})

PRODUCTS = ("matmul", "bmm")


@dataclass
class Mark:
    """A tensor that holds attention weights."""

    tensor: torch.Tensor  # kept alive, or another tensor could take its id
    number: int  # of the attention
    heads: torch.Size  # (b, h), which a family may have folded into one axis

    def per_head(self, values: torch.Tensor) -> torch.Tensor:
        """[b h t e] values, in whatever shape they are multiplied; [b 1 t e] where all heads share them."""
        return values if values.dim() == 4 else values.reshape(*self.heads, *values.shape[-2:])


def name_of_product_function(function: Function) -> str:
    """One name for the ways to write an operation: a + b, torch.add(a, b), a += b, b.__radd__(a)."""
    name = getattr(function, "__name__", str(function)).strip("_")
    return ALIASES.get(name, name)


ALIASES = {
    **{prefix + name: name for name in ("add", "sub", "mul", "matmul") for prefix in "ir"},
    "truediv": "div", "itruediv": "div", "rtruediv": "rdiv", "true_divide": "div", "divide": "div",
    "multiply": "mul", "subtract": "sub", "negative": "neg", "_softmax": "softmax", "square": "pow",
}  # fmt: skip


class Products(TorchFunctionMode):
    """Watches a forward pass; a subclass sees each product of an attention, and may change what goes in and comes out.

    Attentions are numbered in the order of the attention maps.
    """

    _count: int  # softmaxes so far
    _marks: dict[int, Mark]  # by the id of the tensor

    def __enter__(self) -> Self:
        self._count = 0
        self._marks = {}
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __torch_function__(
        self, func: Function, types: object, args: Arguments = (), kwargs: Options | None = None
    ) -> Result:
        kwargs = kwargs or {}
        name = name_of_product_function(func)
        mark = self._marks.get(id(args[0])) if args else None
        if mark is not None and name in PRODUCTS:
            weights, values = self.factors_of_product(mark, args[0], args[1])
            product = self.run_function(name, func, (weights, values), {})
            return self.result_of_product(mark, weights, values, product)

        result = self.run_function(name, func, args, kwargs)
        if not isinstance(result, torch.Tensor):
            return result
        if name == "softmax" and result.dim() == 4:
            self._marks[id(result)] = Mark(result, self._count, result.shape[:2])
            self._count += 1
        elif mark is not None and (name in SHAPES or name in CHANGES):
            self._marks[id(result)] = Mark(result, mark.number, mark.heads)
        return result

    def factors_of_product(
        self, mark: Mark, weights: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The weights and values that one attention shall multiply."""
        return weights, values

    def result_of_product(
        self, mark: Mark, weights: torch.Tensor, values: torch.Tensor, product: torch.Tensor
    ) -> torch.Tensor:
        """What one attention shall go on with behind the product of these weights and values."""
        return product

    def run_function(
        self, name: str, function: Function, args: Arguments, kwargs: Options
    ) -> Result:
        """The result of any function of the pass, also of the product itself."""
        return function(*args, **kwargs)


class ReweightedProducts(Products):
    """Runs one attention with other weights: zero in some rows, scaled in each head."""

    def __init__(self, factors: torch.Tensor | None, nothing: torch.Tensor | None):
        super().__init__()
        self.factors = factors  # [h]
        self.nothing = nothing  # [b 1 s 1]
        self.weights: torch.Tensor | None = None  # [b h s t] as they were multiplied

    def factors_of_product(
        self, mark: Mark, weights: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if self.nothing is not None:
            weights = weights.masked_fill(self.nothing, 0.0)
        if self.factors is not None:
            weights = weights * self.factors.to(weights)[None, :, None, None]
        self.weights = weights
        return weights, values


class RecordedSoftmaxes(Products):
    """Records the weights of every attention as a map: for families whose attention is not an interface."""

    def __init__(self, call: Call):
        super().__init__()
        self.call = call

    def run_function(
        self, name: str, function: Function, args: Arguments, kwargs: Options
    ) -> Result:
        result = function(*args, **kwargs)
        if name == "softmax" and isinstance(result, torch.Tensor) and result.dim() == 4:
            self.call.maps.append(Seen("self", result, self.call.block))
        return result
