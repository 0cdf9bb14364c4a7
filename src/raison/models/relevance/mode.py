"""Tables of relevance rules for functions of one signal or two, and the mode under which a view's backward pass
carries relevance.

A `Rules` is an ordered table of (which functions, which rule). The mode below looks each function of the forward pass
up in it and runs the rule of the first entry that fits; functions that only move numbers keep their own backward step,
which moves relevance just as well, and where a tensor is used twice autograd adds what comes back, as it should.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from raison.models.attention.products import (
    SHAPES,
    Arguments,
    Function,
    Mark,
    Options,
    Products,
    Result,
)
from raison.models.relevance.rules import (
    Rule,
    argument_of_function,
    is_signal,
    signals_in,
    with_backward_rule,
)

__all__ = ["ACTIVATIONS", "STATISTICS", "Heads", "Relevance", "Rules", "one_signal", "two_signals"]

# functions whose own backward step is right for relevance too: they move, cut, join or drop numbers
MOVES = SHAPES | frozenset(
    "getitem get chunk split unbind cat stack gather index_select select narrow take_along_dim repeat "
    "repeat_interleave masked_fill where pad tensor_split size dim data_ptr stride zeros_like ones_like numel "
    "is_floating_point detach roll flip tril triu broadcast_to shape dtype device".split()
)

ACTIVATIONS = frozenset(
    "activation gelu relu silu tanh sigmoid elu selu leaky_relu relu6 mish hardswish hardtanh softplus softsign".split()
)

STATISTICS = frozenset("rsqrt sqrt pow var std norm".split())  # of a norm that is written out

SUBTRACTED = {"add": None, "sub": 1, "rsub": 0}  # which argument of an addition is subtracted

# (name of the function, number of its signals) -> whether a rule is for it
Fits = Callable[[str, int], bool]


def one_signal(*names: str) -> Fits:
    """Functions of these names with a single signal among their arguments."""
    return lambda name, signals: signals == 1 and name in names


def two_signals(*names: str) -> Fits:
    """Functions of these names whose first two arguments are both signals."""
    return lambda name, signals: signals == 2 and name in names


@dataclass(frozen=True)
class Heads:
    """Which heads relevance may pass: syntactic and positional ones [maps h], and how (methods.md 5.3)."""

    syntactic: np.ndarray
    positional: np.ndarray
    # as the published code does it: no renormalisation, saved maps see no mask
    released: bool = False


@dataclass(frozen=True)
class Rules:
    """An ordered table of rules, and what its backward pass carries."""

    table: tuple[tuple[Fits, Rule], ...]
    # of a product with an activation's result, that result is taken as given
    gates_constant: bool = False
    # it carries gradients: relevance is their product with the tensor they belong to
    gradients: bool = False
    # it carries multipliers between an input and its reference, the two halves of the batch
    paired: bool = False
    heads: Heads | None = None

    def through(self, heads: Heads | None) -> Rules:
        return replace(self, heads=heads)


class Relevance(Products):
    """The function mode of one forward pass under rules."""

    def __init__(self, rules: Rules, rows: int = 0):
        super().__init__()
        self.rules = rules
        # [b] relevance of added constants in a backward pass
        self.constants = torch.zeros(rows, dtype=torch.float64)
        # [b h s t] attention weights as they enter their product with values
        self.maps: dict[int, torch.Tensor] = {}
        # functions without a rule: their gradient was taken, nothing is promised
        self.strange: set[str] = set()
        # results of activations, by id
        self._gates: dict[int, torch.Tensor] = {}

    def run_function(
        self, name: str, function: Function, args: Arguments, kwargs: Options
    ) -> Result:
        signals = len(signals_in(args, kwargs))
        if signals == 0 or name in MOVES:
            result = function(*args, **kwargs)
            is_gate = name in SHAPES and id(args[0]) in self._gates
            if is_gate and isinstance(result, torch.Tensor):
                self._gates[id(result)] = result
            return result

        is_product = name == "mul" and signals == 2
        if is_product and self.rules.gates_constant:
            args = self.without_gate(args)
            signals = len(signals_in(args, kwargs))
        result = self.by_rule(name, signals, function, args, kwargs)

        if name in ACTIVATIONS:
            self._gates[id(result)] = result
        if self.rules.gradients and len(self.constants):
            constant = constant_beside_signal(name, args, kwargs)
            if constant is not None and result.requires_grad:
                hook = partial(self.meet_constant, constant)
                result.register_hook(hook)
        return result

    def meet_constant(self, constant: torch.Tensor, slope: torch.Tensor) -> None:
        """In a backward pass: relevance of a constant is the gradient of the sum that it is part of, times itself."""
        shares = slope.detach() * constant.to(slope)
        by_row = shares.reshape(len(self.constants), -1)  # rows first, also if folded
        totals = by_row.sum(1)
        self.constants += totals.cpu().double()  # some devices have no float64

    def by_rule(
        self, name: str, signals: int, function: Function, args: Arguments, kwargs: Options
    ) -> Result:
        """The result under the first rule that is for such a function; under its own where there is none."""
        for fits, rule in self.rules.table:
            if fits(name, signals):
                out_of_place = out_of_place_function(name, function)
                return rule(out_of_place, args, kwargs)
        self.strange.add(name)
        return function(*args, **kwargs)

    def without_gate(self, args: Arguments) -> Arguments:
        """The factors of a product; of one whose other factor is an activation's result, that one as a constant."""
        left, right = args[:2]
        left_is_gate = id(left) in self._gates
        right_is_gate = id(right) in self._gates
        if left_is_gate == right_is_gate:
            return args
        if left_is_gate:
            return left.detach(), right
        return left, right.detach()

    def factors_of_product(
        self, mark: Mark, weights: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        heads = self.rules.heads
        number = mark.number
        shape = weights.shape
        if heads is not None and heads.released:
            chosen = heads.syntactic[number] | heads.positional[number]
            passes = chosen.astype(float)
            weights = relevance_scaled_by_head(weights, mark.heads, passes)
            values = relevance_scaled_by_head(values, mark.heads, passes)

        # a tensor of its own, whose relevance is that of this product alone
        by_head = (*mark.heads, *shape[-2:])
        own_weights = weights.reshape(by_head).view(by_head)
        self.maps[number] = own_weights
        return own_weights.reshape(shape), values

    def result_of_product(
        self, mark: Mark, weights: torch.Tensor, values: torch.Tensor, product: torch.Tensor
    ) -> torch.Tensor:
        heads = self.rules.heads
        if heads is None or heads.released:
            return product
        syntactic = heads.syntactic[mark.number]
        positional = heads.positional[mark.number]
        return relevance_through_heads(product, mark.heads, syntactic, positional)


def constant_beside_signal(name: str, args: Arguments, kwargs: Options) -> torch.Tensor | None:
    """The constant that a function adds to what depends on its one signal: a bias, a position embedding, a mask."""
    constant: object = None
    if name == "linear":
        constant = argument_of_function(args, kwargs, 2, "bias")
    elif name == "layer_norm":
        constant = argument_of_function(args, kwargs, 3, "bias")
    elif name == "addmm":
        constant = args[0]
    elif name in SUBTRACTED and len(args) > 1:
        constant = constant_added_to_signal(name, args)
    if not isinstance(constant, torch.Tensor) or constant.requires_grad:
        return None
    return constant


def constant_added_to_signal(name: str, args: Arguments) -> torch.Tensor | None:
    """What is added to a signal, by its sign; None where both sides are signals."""
    left, right = args[:2]
    if is_signal(left) == is_signal(right):
        return None
    place = 0
    if is_signal(left):
        place = 1
    constant = torch.as_tensor(args[place])
    if place == SUBTRACTED[name]:
        return -constant
    return constant


def out_of_place_function(name: str, function: Function) -> Function:
    """The function that writes a new tensor, where this one (a += b) would write over its first argument."""
    raw = getattr(function, "__name__", "")
    is_method_in_place = raw.endswith("_") and not raw.endswith("__")
    is_operator_in_place = raw.startswith("__i")
    if is_method_in_place or is_operator_in_place:
        new: Function = getattr(torch, name)
        return new
    return function


def relevance_scaled_by_head(
    tensor: torch.Tensor, heads: torch.Size, factor: np.ndarray
) -> torch.Tensor:
    """The same numbers; relevance is multiplied by the factor of each head."""
    scale = torch.from_numpy(factor).to(tensor)
    scale_of_heads = scale[None, :, None]

    def pull(relevance: torch.Tensor) -> tuple[torch.Tensor, ...]:
        folded = relevance.reshape(*heads, -1)
        scaled = folded * scale_of_heads
        return (scaled.reshape(relevance.shape),)

    return with_backward_rule(tensor, pull, tensor)


def relevance_through_heads(
    result: torch.Tensor, heads: torch.Size, syntactic: np.ndarray, positional: np.ndarray
) -> torch.Tensor:
    """Relevance of an attention output through the chosen heads only, renormalised per example.

    R_s = M_s R and R_p = M_p R (half in each for a head of both kinds), each rescaled to its share
    |ΣR_k| / (|ΣR_s| + |ΣR_p|) of ΣR. Without any chosen head the output is made a constant, so that the residual
    branch takes what would have come this way.
    """
    if not (syntactic.any() or positional.any()):
        return result.detach()
    kinds = syntactic.astype(float) + positional  # [h] 0, 1 or 2
    share = 1.0 / np.maximum(1, kinds)
    syntactic_share = torch.from_numpy(syntactic * share)
    positional_share = torch.from_numpy(positional * share)
    syntactic_mask = syntactic_share.to(result)[None, :, None]
    positional_mask = positional_share.to(result)[None, :, None]

    def pull(relevance: torch.Tensor) -> tuple[torch.Tensor, ...]:
        folded = relevance.reshape(*heads, -1)  # [b h s·d]
        total = folded.sum((1, 2))  # ΣR
        syntactic_part = folded * syntactic_mask
        positional_part = folded * positional_mask
        syntactic_total = syntactic_part.sum((1, 2))
        positional_total = positional_part.sum((1, 2))

        totals = torch.stack([syntactic_total, positional_total])  # [2 b]
        sizes = totals.abs()
        shares = sizes / sizes.sum(0)
        wanted = shares * total
        factors = torch.where(totals == 0, 0.0, wanted / totals)
        of_syntactic, of_positional = factors[:, :, None, None]
        kept = syntactic_part * of_syntactic + positional_part * of_positional
        return (kept.reshape(relevance.shape),)

    return with_backward_rule(result, pull, result)
