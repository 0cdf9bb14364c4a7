"""From attention scores to attention weights: dense, sparse, and what lies between (P2).

A normalizer is called with scores a [.., t] and `real` [.., t], True where a token may be attended to; it gives weights
that add up to 1 over real tokens and are exactly 0 elsewhere. A row without a real token has no weights at all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

import torch

from raison.core.errors import InputError, MissingExtra
from raison.core.registry import Registry
from raison.core.spec import Spec

__all__ = ["Normalizer", "normalizer_of", "normalizers"]

normalizers: Registry[Any] = Registry("normalizer", "raison.attention_models", listed=False)
N = TypeVar("N", bound="type[Normalizer]")
AWAY = -1e9  # of a score that may not count; finite, since sorting and cumulative sums meet it


def normalizer(name: str) -> Callable[[N], N]:
    """Register a normalizer under the name that users type."""
    return normalizers.named(name)


def normalizer_of(spec: str | Spec) -> Normalizer:
    """The normalizer of a spec such as `sparsegen(lam=0.6)`."""
    found: Normalizer = normalizers.build(spec)
    return found


@dataclass(frozen=True)
class Normalizer(ABC):
    """Parameters only; scores arrive with the call."""

    name: ClassVar[str]
    sparse: ClassVar[bool] = True  # gives exact zeros

    def __call__(self, scores: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        # a row with nothing real is weighed as if all were, and gets nothing: bisection would find 0 / 0
        there = real | ~real.any(-1, keepdim=True)
        precise = scores.float() if scores.dtype == torch.float16 else scores  # which can't hold what is away
        return self.weigh(precise.masked_fill(~there, AWAY)).to(scores.dtype) * real

    @abstractmethod
    def weigh(self, scores: torch.Tensor) -> torch.Tensor:
        """[.., t] weights that add up to 1."""

    def spec(self) -> Spec:
        return Spec(
            self.name, {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        )


def library() -> Any:
    try:
        import entmax
    except ImportError:
        raise MissingExtra("entmax", "sparse", "Sparse attention") from None
    return entmax


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
        found: torch.Tensor = library().sparsemax(scores, dim=-1)
        return found


@normalizer("sparsegen")
@dataclass(frozen=True)
class Sparsegen(Normalizer):
    """argmin_p ‖p − a‖² − λ ‖p‖² = sparsemax(a / (1 − λ)): uniform at λ → −∞, one token at λ → 1 (Laha et al. 2018)."""

    lam: float = 0.0  # λ < 1; 0 is sparsemax

    def __post_init__(self) -> None:
        if not isinstance(self.lam, (int, float)) or not self.lam < 1:
            raise InputError(f"λ of sparsegen is a number below 1 (0 is sparsemax, near 1 one token), not {self.lam}.")

    def weigh(self, scores: torch.Tensor) -> torch.Tensor:
        away = scores == AWAY  # stays there: divided by a large 1 − λ it would come near enough to count
        if self.lam > 0:  # divided by a small one, even the best score might fall as low: it stays at 0
            scores = scores - scores.max(-1, keepdim=True).values.detach()
        moved = torch.where(away, AWAY, scores / (1 - self.lam))
        found: torch.Tensor = library().sparsemax(moved, dim=-1)
        return found


@normalizer("entmax")
@dataclass(frozen=True)
class Entmax(Normalizer):
    """argmax_p ⟨p, a⟩ + H_α(p): softmax at α = 1, sparsemax at α = 2 (Peters et al. 2019)."""

    alpha: float = 1.5  # from 1 up

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, (int, float)) or not self.alpha >= 1:
            raise InputError(f"alpha of entmax is a number from 1 (softmax) up (2 is sparsemax), not {self.alpha}.")

    def weigh(self, scores: torch.Tensor) -> torch.Tensor:
        if self.alpha == 1:
            return scores.softmax(-1)
        found: torch.Tensor
        if self.alpha in (1.5, 2):  # closed forms
            found = {1.5: library().entmax15, 2: library().sparsemax}[self.alpha](scores, dim=-1)
        else:
            found = library().entmax_bisect(scores, alpha=self.alpha, dim=-1)
        return found
