"""Normalizers from attention scores to attention weights: softmax, sparsemax, sparsegen, entmax (P2).

A normalizer is called with scores a [.., t] and `real` [.., t], True where a token may be attended to; it gives weights
that add up to 1 over real tokens and are exactly 0 elsewhere. A row without a real token has no weights at all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar, cast

import torch

from raison.core.errors import InputError, MissingExtra
from raison.core.parameters import changed_parameters
from raison.core.registry import Registry
from raison.core.spec import Spec

__all__ = ["Normalizer", "normalizer_of", "normalizers"]

normalizers: Registry[type[Normalizer]] = Registry(
    "normalizer", "raison.attention_models", listed=False
)
N = TypeVar("N", bound="type[Normalizer]")
# the score of a token that may not count; finite, since sorting and cumulative sums meet it
HIDDEN = -1e9


def normalizer(name: str) -> Callable[[N], N]:
    """Register a normalizer under the name that users type."""
    return normalizers.named(name)


def normalizer_of(spec: str | Spec) -> Normalizer:
    """The normalizer of a spec such as `sparsegen(lam=0.6)`."""
    return cast(Normalizer, normalizers.build(spec))


@dataclass(frozen=True)
class Normalizer(ABC):
    """Parameters only; scores arrive with the call."""

    name: ClassVar[str]
    sparse: ClassVar[bool] = True  # gives exact zeros

    def __call__(self, scores: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        # a row with nothing real is weighed as if all were, and gets nothing: bisection would compute 0 / 0
        weighed = real | ~real.any(-1, keepdim=True)
        wide_scores = scores
        if scores.dtype == torch.float16:  # can't hold HIDDEN
            wide_scores = scores.float()
        weights = self.weigh(wide_scores.masked_fill(~weighed, HIDDEN))
        return weights.to(scores.dtype) * real

    @abstractmethod
    def weigh(self, scores: torch.Tensor) -> torch.Tensor:
        """[.., t] weights that add up to 1."""

    def spec(self) -> Spec:
        """The spec that makes this normalizer again; parameters that are at their defaults are left out."""
        return Spec(self.name, changed_parameters(self))


def sparsemax(scores: torch.Tensor) -> torch.Tensor:
    """argmin_p ‖p − scores‖² over the simplex."""
    try:
        import entmax
    except ImportError:
        raise MissingExtra("entmax", "sparse", "Sparse attention") from None
    return cast(torch.Tensor, entmax.sparsemax(scores, dim=-1))


def entmax_of(scores: torch.Tensor, alpha: float) -> torch.Tensor:
    """argmax_p ⟨p, scores⟩ + H_α(p); of α = 1.5 by its closed form, else by bisection."""
    try:
        import entmax
    except ImportError:
        raise MissingExtra("entmax", "sparse", "Sparse attention") from None
    if alpha == 1.5:
        return cast(torch.Tensor, entmax.entmax15(scores, dim=-1))
    return cast(torch.Tensor, entmax.entmax_bisect(scores, alpha=alpha, dim=-1))


@normalizer("softmax")
@dataclass(frozen=True)
class Softmax(Normalizer):
    """p_i = exp(a_i) / Σ_k exp(a_k): every token gets some weight."""

    sparse = False

    def weigh(self, scores: torch.Tensor) -> torch.Tensor:
        return scores.softmax(-1)


@normalizer("sparsemax")
@dataclass(frozen=True)
class Sparsemax(Normalizer):
    """argmin_p ‖p − a‖²: the nearest point of the simplex, with exact zeros (Martins & Astudillo 2016)."""

    def weigh(self, scores: torch.Tensor) -> torch.Tensor:
        return sparsemax(scores)


@normalizer("sparsegen")
@dataclass(frozen=True)
class Sparsegen(Normalizer):
    """argmin_p ‖p − a‖² − λ ‖p‖² = sparsemax(a / (1 − λ)): uniform at λ → −∞, one token at λ → 1 (Laha et al. 2018)."""

    lam: float = 0.0  # λ < 1; 0 is sparsemax

    def __post_init__(self) -> None:
        if not isinstance(self.lam, (int, float)) or not self.lam < 1:
            raise InputError(
                f"λ of sparsegen is a number below 1 (0 is sparsemax, near 1 one token), not {self.lam}."
            )

    def weigh(self, scores: torch.Tensor) -> torch.Tensor:
        # stays there: divided by a large 1 − λ it would come near enough to count
        hidden = scores == HIDDEN
        if (
            self.lam > 0
        ):  # divided by a small one, even the best score might fall as low: it stays at 0
            scores = scores - scores.max(-1, keepdim=True).values.detach()
        return sparsemax(torch.where(hidden, HIDDEN, scores / (1 - self.lam)))


@normalizer("entmax")
@dataclass(frozen=True)
class Entmax(Normalizer):
    """argmax_p ⟨p, a⟩ + H_α(p): softmax at α = 1, sparsemax at α = 2 (Peters et al. 2019)."""

    alpha: float = 1.5  # from 1 up

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, (int, float)) or not self.alpha >= 1:
            raise InputError(
                f"alpha of entmax is a number from 1 (softmax) up (2 is sparsemax), not {self.alpha}."
            )

    def weigh(self, scores: torch.Tensor) -> torch.Tensor:
        if self.alpha == 1:
            return scores.softmax(-1)
        if self.alpha == 2:
            return sparsemax(scores)
        return entmax_of(scores, self.alpha)
