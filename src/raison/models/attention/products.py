"""Finding the products of attention weights with values, in any family, while a forward pass runs.

Every attention ends in softmax(...) @ values. A function mode marks what comes out of a 4-D softmax, follows the mark
through casts and reshapes, and so meets the product, whether the family uses transformers' interface or not. What is
done there (relevance through chosen heads only, a value switched off, values looked at) is a subclass's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

__all__ = [
    "SHAPES",
    "Arguments",
    "Function",
    "Mark",
    "Options",
    "Products",
    "argument",
    "name_of",
    "signals_in",
    "tensors_in",
]

Function = Callable[..., Any]  # an operation of torch, as a function mode meets it
Arguments = tuple[Any, ...]
Options = dict[str, Any]

# what only moves, casts or cuts numbers: for a mark, and for a gradient, the result is the same tensor
SHAPES = frozenset(
    "view reshape transpose permute contiguous flatten unflatten squeeze unsqueeze expand movedim swapaxes clone "
    "float double half bfloat16 to type type_as view_as dropout".split()
)

CHANGES = frozenset(
    {"masked_fill", "getitem", "mul"}
)  # what the tap may do to weights before it multiplies again


@dataclass
class Mark:
    """A tensor that holds attention weights."""

    tensor: torch.Tensor  # kept alive, or another tensor could take its id
    number: int  # of the attention
    heads: torch.Size  # (b, h), which a family may have folded into one axis

    def per_head(self, values: torch.Tensor) -> torch.Tensor:
        """[b h t e] values, in whatever shape they are multiplied; [b 1 t e] where all heads share them."""
        return values if values.dim() == 4 else values.reshape(*self.heads, *values.shape[-2:])


def name_of(function: Function) -> str:
    """One name for the ways to write an operation: a + b, torch.add(a, b), a += b, b.__radd__(a)."""
    name = getattr(function, "__name__", str(function)).strip("_")
    return ALIASES.get(name, name)


ALIASES = {
    **{prefix + name: name for name in ("add", "sub", "mul", "matmul") for prefix in "ir"},
    "truediv": "div", "itruediv": "div", "rtruediv": "rdiv", "true_divide": "div", "divide": "div",
    "multiply": "mul", "subtract": "sub", "negative": "neg", "_softmax": "softmax", "square": "pow",
}  # fmt: skip


def argument(args: Arguments, kwargs: Options, place: int, name: str, default: Any = None) -> Any:
    """An argument of a function, given by its place or by its name."""
    if len(args) > place:
        return args[place]
    return kwargs.get(name, default)


def signals_in(args: Arguments, kwargs: Options) -> list[torch.Tensor]:
    """The arguments that depend on the input: weights are frozen, so only those want a gradient."""
    return [value for value in tensors_in((*args, *kwargs.values())) if value.requires_grad]


def tensors_in(values: Iterable[object]) -> Iterator[torch.Tensor]:
    """The tensors among values, also those in lists."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from tensors_in(value)


class Products(TorchFunctionMode):
    """Watches a forward pass; `product` is called at each attention, numbered in the order of the attention maps."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0  # softmaxes so far
        self._marks: dict[int, Mark] = {}

    def __torch_function__(
        self, func: Function, types: object, args: Arguments = (), kwargs: Options | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = name_of(func)
        mark = self._marks.get(id(args[0])) if args else None
        if mark is not None and name in ("matmul", "bmm"):
            return self.product(mark, args[0], args[1], func)

        result = self.other(name, func, args, kwargs)
        if not isinstance(result, torch.Tensor):
            return result
        if name == "softmax" and result.dim() == 4:
            self._marks[id(result)] = Mark(result, self.count, result.shape[:2])
            self.count += 1
        elif mark is not None and (name in SHAPES or name in CHANGES):
            self._marks[id(result)] = Mark(result, mark.number, mark.heads)
        return result

    def product(
        self, mark: Mark, weights: torch.Tensor, values: torch.Tensor, multiply: Function
    ) -> torch.Tensor:
        """weights @ values of one attention."""
        result: torch.Tensor = self.other(name_of(multiply), multiply, (weights, values), {})
        return result

    def other(self, name: str, function: Function, args: Arguments, kwargs: Options) -> Any:
        """Any function that is no attention product."""
        return function(*args, **kwargs)
