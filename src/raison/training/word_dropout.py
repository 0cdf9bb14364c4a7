"""Word dropout: keep rules draw which tokens a training pass may see, anew for each batch (P0 section 4).

A keep rule draws a set K of tokens, and attention i → j is allowed where

    self, decoder   j ≤ i and (j ∈ K or j = i)     row i predicts from itself and what is kept before it, as in a search
    encoder         j ∈ K or j = i                 what is not kept reads, but nobody reads it
    cross           j ∈ K                          a row without a kept source token gives 0

in all layers. The setting `heads` of a rule says whether all heads see the same set (`alike`) or each draws its own
(`each`). Only a set that all heads share is one that evaluation can ask about: with sets of their own, what one head
misses another one sees. P0 describes one set for all heads for its language models (`uniform_length`); in its
translation code (`inverse_length`) heads see the sets of other examples by a slip of indices. So `alike` and `each` are
the defaults of these two.

Deviations: sets are drawn for each example, not once for a batch, and T is the example's own length, not the padded
one, so that neighbours do not matter. Tokens that evaluation can't remove (the special tokens that a tokenizer puts in
front of a text) are always kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import torch

from raison.core.errors import InputError, UnknownName
from raison.core.parameters import changed_parameters, check_choice, check_in_range
from raison.core.registry import Registry, suggest_name
from raison.core.spec import Spec
from raison.training.seeds import seeded_generator

__all__ = [
    "HEAD_SETS",
    "DropoutSide",
    "KeepRule",
    "Keeps",
    "attention_pairs_after_dropout",
    "draw_keeps",
    "keep_rule_of",
    "keep_rules",
]

HEAD_SETS = ("alike", "each")

keep_rules: Registry[type[KeepRule]] = Registry("keep rule", "raison.training", listed=False)
R = TypeVar("R", bound="type[KeepRule]")


def keep_rule(name: str) -> Callable[[R], R]:
    """Register a keep rule under the name that users type."""
    return keep_rules.named(name)


@dataclass(frozen=True)
class KeepRule(ABC):
    """Parameters only; the batch arrives with the call."""

    name: ClassVar[str]
    drops: ClassVar[bool] = True  # False: nothing is ever dropped

    @abstractmethod
    def draw(self, free: torch.Tensor, heads: int, random: torch.Generator) -> torch.Tensor:
        """[b h t] what is kept of the tokens `free` [b t] that may be dropped."""

    def spec(self) -> Spec:
        """The rule as users type it."""
        return Spec(self.name, changed_parameters(self))


@keep_rule("uniform_length")
@dataclass(frozen=True)
class UniformLength(KeepRule):
    """Every number of kept tokens from none to all is equally likely, and every set of that size.

    n ~ U{0..T}; K is a random set of n tokens. P0 for language models (its text says 1..T, its code draws 0 too).
    """

    heads: str = "alike"  # alike | each: one set for all heads, or a set of each head's own (of the same size)

    def __post_init__(self) -> None:
        check_choice("heads", self.heads, HEAD_SETS)

    def draw(self, free: torch.Tensor, heads: int, random: torch.Generator) -> torch.Tensor:
        size = free.sum(1)  # [b]
        share = torch.rand(len(free), generator=random, dtype=torch.float64)
        count = (share * (size + 1)).long().clamp(max=size)
        noise = noise_for_dropout_sets(free, count_of_dropout_sets(self.heads, heads), random)
        noise = noise.masked_fill(~free[:, None], 2.0)  # behind all that may be chosen
        rank = noise.argsort(-1).argsort(-1)
        return (rank < count[:, None, None]).expand(-1, heads, -1)


@keep_rule("inverse_length")
@dataclass(frozen=True)
class InverseLength(KeepRule):
    """Each token is kept with probability 1 / T, so that one is kept on average.

    P0 for translation; a third of the sources keep nothing.
    """

    heads: str = "each"  # alike | each

    def __post_init__(self) -> None:
        check_choice("heads", self.heads, HEAD_SETS)

    def draw(self, free: torch.Tensor, heads: int, random: torch.Generator) -> torch.Tensor:
        size = free.sum(1).clamp(min=1)
        share = 1.0 / size.double()
        noise = noise_for_dropout_sets(free, count_of_dropout_sets(self.heads, heads), random)
        keep = noise < share[:, None, None]
        return keep.expand(-1, heads, -1)


@keep_rule("bernoulli")
@dataclass(frozen=True)
class Bernoulli(KeepRule):
    """Each token is kept with probability p."""

    p: float = 0.5  # share of the tokens that are kept
    heads: str = "alike"  # alike | each

    def __post_init__(self) -> None:
        check_in_range("p", self.p, 0, 1)
        check_choice("heads", self.heads, HEAD_SETS)

    def draw(self, free: torch.Tensor, heads: int, random: torch.Generator) -> torch.Tensor:
        noise = noise_for_dropout_sets(free, count_of_dropout_sets(self.heads, heads), random)
        keep = noise < self.p
        return keep.expand(-1, heads, -1)


@keep_rule("none")
@dataclass(frozen=True)
class Everything(KeepRule):
    """Everything is kept: plain training, the control."""

    drops = False

    def draw(self, free: torch.Tensor, heads: int, random: torch.Generator) -> torch.Tensor:
        return torch.ones(len(free), heads, free.shape[1], dtype=torch.bool)


def count_of_dropout_sets(which: str, heads: int) -> int:
    """How many sets are drawn."""
    return heads if which == "each" else 1


def noise_for_dropout_sets(free: torch.Tensor, sets: int, random: torch.Generator) -> torch.Tensor:
    """[b sets t] one number between 0 and 1 for each token of each set."""
    return torch.rand(len(free), sets, free.shape[1], generator=random, dtype=torch.float64)


def keep_rule_of(spec: str | Spec | KeepRule) -> KeepRule:
    """The keep rule of a spec."""
    if isinstance(spec, KeepRule):
        return spec
    if not isinstance(spec, (str, Spec)):
        raise InputError(
            f"A {type(spec).__name__} is not a keep rule: name one of {', '.join(keep_rules)}."
        )
    if isinstance(spec, str):
        spec = Spec.parse(spec)
    if spec.name not in keep_rules:
        near = suggest_name(spec.name, list(keep_rules))
        raise UnknownName(
            f"There is no keep rule {spec.name!r}.{near} Use one of {', '.join(keep_rules)}."
        )
    built: KeepRule = keep_rules.build(spec)
    return built


@dataclass(frozen=True)
class Keeps:
    """What one forward pass may see; None: everything."""

    target: torch.Tensor | None = None  # [b h t] of a decoder, whose self-attention it rules
    # [b h t] of an encoder: its self-attention and the cross-attention
    source: torch.Tensor | None = None

    def of(self, kind: str) -> torch.Tensor | None:
        """The keep of the keys that an attention of this kind looks at."""
        if kind in ("encoder", "cross"):
            return self.source
        return self.target


@dataclass(frozen=True)
class DropoutSide:
    """The tokens of one sequence of a batch, for drawing."""

    real: torch.Tensor  # [b t] False at padding
    heads: int  # of the attentions that look at it
    fixed: torch.Tensor | None = None  # [b t] or [t]: always kept

    def keep(self, keep_rule: KeepRule, random: torch.Generator) -> torch.Tensor:
        """[b h t] by the rule, on the CPU whatever the model's device is, so that machines agree."""
        real = self.real.bool().cpu()
        fixed = torch.zeros_like(real)
        if self.fixed is not None:
            fixed = self.fixed.bool().cpu().expand_as(real) & real
        keep = keep_rule.draw(real & ~fixed, self.heads, random) | fixed[:, None]
        return (keep & real[:, None]).to(self.real.device)


def draw_keeps(
    keep_rule: KeepRule,
    mix: float,
    sides: Sequence[DropoutSide],
    *,
    seed: int,
    step: int,
    coins: str = "apart",
) -> Keeps | None:
    """What the pass of a step may see; None where the coin says that it sees everything.

    `sides` is (target,) for a decoder and (target, source) for an encoder-decoder. With probability `mix` there is
    dropout, by one coin for the whole batch; an encoder-decoder tosses one coin for each side (`apart`, as P0's code
    does: with mix 0.5 a quarter of the steps drop on both sides), or one for both (`one`, as its text reads).
    """
    random = seeded_generator(seed, step)
    tosses = torch.rand(2, generator=random, dtype=torch.float64) < mix
    if coins == "one":
        tosses[1] = tosses[0]
    if not keep_rule.drops:
        return None
    keeps: list[torch.Tensor | None] = []
    for side, drops in zip(sides, tosses.tolist(), strict=False):
        keep = side.keep(keep_rule, random)  # drawn always: coins change no set
        keeps.append(keep if drops else None)
    if all(keep is None for keep in keeps):
        return None
    return Keeps(*keeps)


def attention_pairs_after_dropout(keep: torch.Tensor, kind: str, rows: int) -> torch.Tensor:
    """[b h s t] which of `rows` queries may look at which key, for the keep [b h t] of the keys."""
    size = keep.shape[-1]
    if kind == "cross":
        return keep[:, :, None, :].expand(-1, -1, rows, -1)
    if rows != size:
        raise ValueError(
            f"self-attention of {rows} rows over {size} tokens: word dropout knows no cache"
        )
    same = torch.eye(size, dtype=torch.bool, device=keep.device)
    allowed = keep[:, :, None, :] | same
    if kind == "encoder":
        return allowed
    not_after = torch.ones_like(same).tril()
    return allowed & not_after
