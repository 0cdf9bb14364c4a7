"""What a rationalizer is trained by (P1), and how far it is from what was asked.

    loss = 2 · CE(rationale) + 1 · CE(full text) + λ_s Σ_i |share_i − ℓ_i| + λ_c Σ_i coherence_i
           (+ λ_j JSD(soft, hard): A2R)    (+ λ_h · cross-entropy with human rationales: the supervised variant)

P1's code writes CE + 2 CE_full + (CE − CE_full), which is the same. Shares and coherence are of real tokens, so padding
does not change them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

from raison.core.errors import InputError
from raison.rationalizers.config import Frame, levels
from raison.rationalizers.module import Selected

__all__ = ["Weights", "coherence", "shares", "sparsity_gap", "total"]


@dataclass(frozen=True)
class Weights:
    """How much each term counts."""

    rationale: float = 2.0
    full: float = 1.0
    sparsity: float = 5.0
    coherence: float = 0.1  # P1: 10, with which short texts collapse
    soft: float = 1.0
    human: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value >= 0:
                raise InputError(f"The weight of {name} is a number from 0 up, not {value}.")


def shares(mask: torch.Tensor, told: Selected, count: int) -> list[torch.Tensor]:
    """Share of the real tokens of a batch that is kept; of a pair, in each text."""
    assert told.real is not None and told.side is not None
    if count == 1:
        return [mask.sum() / told.real.sum().clamp(min=1)]
    parts = [told.real & (told.side == number) for number in range(count)]
    return [(mask * part).sum() / part.sum().clamp(min=1) for part in parts]


def sparsity_gap(told: Selected, frame: Frame) -> torch.Tensor:
    """Σ_i |share_i − ℓ_i| over pruning blocks (and texts)."""
    assert told.masks is not None
    wanted = [levels(share, frame.pruning) for share in frame.sparsity]
    gaps = [
        (share - wanted[text][number]).abs()
        for number, mask in enumerate(told.masks)
        for text, share in enumerate(shares(mask, told, len(wanted)))
    ]
    return torch.stack(gaps).sum()


def coherence(mask: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """How often a neighbour is treated otherwise: the mean of |m_t − m_{t−1}| over real neighbours."""
    both = real[:, 1:] & real[:, :-1]
    return ((mask[:, 1:] - mask[:, :-1]).abs() * both).sum() / both.sum().clamp(min=1)


def prediction_loss(logits: torch.Tensor, labels: torch.Tensor, spread: float = 1.0) -> torch.Tensor:
    """Cross-entropy of classes; squared error of a regression, in units of its labels' `spread`."""
    if logits.shape[-1] == 1:
        return functional.mse_loss(logits[:, 0] / spread, labels.to(logits) / spread)
    return functional.cross_entropy(logits, labels.long())


def divergence(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Mean Jensen-Shannon divergence of two answers."""
    one, other = first.log_softmax(-1), second.log_softmax(-1)
    middle = ((one.exp() + other.exp()) / 2).clamp(min=1e-30).log()
    apart = (one.exp() * (one - middle) + other.exp() * (other - middle)).sum(-1) / 2
    return apart.mean()


def human_loss(told: Selected, gold: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of the last selection with what people marked; `known` [b]: texts where they did."""
    assert told.margins is not None and told.real is not None
    inside = told.real & known[:, None]
    each = functional.binary_cross_entropy_with_logits(told.margins[-1], gold.to(told.margins[-1]), reduction="none")
    return (each * inside).sum() / inside.sum().clamp(min=1)


def total(
    told: Selected,
    labels: torch.Tensor,
    frame: Frame,
    weights: Weights,
    *,
    selecting: bool = True,
    gold: torch.Tensor | None = None,
    known: torch.Tensor | None = None,
    spread: float = 1.0,
) -> torch.Tensor:
    """The loss of a batch; without `selecting` (warm-up) the selection itself is not judged."""
    assert told.logits is not None and told.masks is not None and told.real is not None
    value = weights.rationale * prediction_loss(told.logits, labels, spread)
    if told.full_logits is not None:
        value = value + weights.full * prediction_loss(told.full_logits, labels, spread)
    if told.soft_logits is not None:
        value = value + weights.rationale * prediction_loss(told.soft_logits, labels, spread)
        if told.logits.shape[-1] > 1:
            value = value + weights.soft * divergence(told.soft_logits, told.logits)
    if selecting:
        value = value + weights.sparsity * sparsity_gap(told, frame)
        for mask in told.masks:
            value = value + weights.coherence * coherence(mask, told.real)
    if weights.human and gold is not None and known is not None:
        value = value + weights.human * human_loss(told, gold, known)
    return value
