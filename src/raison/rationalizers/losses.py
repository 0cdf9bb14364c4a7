"""What a rationalizer is trained by (P1), and how far it is from what was asked.

    loss = 2 · CE(rationale) + 1 · CE(full text) + λ_s Σ_i |share_i − ℓ_i| + λ_c Σ_i coherence_i
           (+ λ_j JSD(soft, hard): A2R)    (+ λ_h · cross-entropy with human rationales: the supervised variant)

P1's code writes CE + 2 CE_full + (CE − CE_full), which is the same. Shares and coherence are of real tokens, so padding
does not change them.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from raison.rationalizers.config import RationalizerConfig, pruning_levels
from raison.rationalizers.output import RationalizerOutput
from raison.rationalizers.training_config import LossWeights

__all__ = ["coherence", "kept_shares", "prediction_loss", "rationalizer_loss", "sparsity_gap"]


def kept_shares(mask: torch.Tensor, output: RationalizerOutput, texts: int) -> list[torch.Tensor]:
    """Share of the real tokens of a batch that is kept; of a pair, in each text."""
    if texts == 1:
        return [mask.sum() / output.real.sum().clamp(min=1)]
    parts = [output.real & (output.side == number) for number in range(texts)]
    return [(mask * part).sum() / part.sum().clamp(min=1) for part in parts]


def sparsity_gap(output: RationalizerOutput, config: RationalizerConfig) -> torch.Tensor:
    """Σ_i |share_i − ℓ_i| over pruning blocks (and texts)."""
    levels = [pruning_levels(share, config.pruning) for share in config.sparsity]
    gaps = []
    for number, mask in enumerate(output.masks):
        for text, share in enumerate(kept_shares(mask, output, len(levels))):
            gaps.append((share - levels[text][number]).abs())
    return torch.stack(gaps).sum()


def coherence(mask: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """How often a neighbour is treated otherwise: the mean of |m_t − m_{t−1}| over real neighbours."""
    both = real[:, 1:] & real[:, :-1]
    return ((mask[:, 1:] - mask[:, :-1]).abs() * both).sum() / both.sum().clamp(min=1)


def prediction_loss(
    logits: torch.Tensor, labels: torch.Tensor, label_std: float = 1.0
) -> torch.Tensor:
    """Cross-entropy of classes; squared error of a regression, in units of its labels' standard deviation."""
    if logits.shape[-1] == 1:
        return functional.mse_loss(logits[:, 0] / label_std, labels.to(logits) / label_std)
    return functional.cross_entropy(logits, labels.long())


def jensen_shannon(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Mean Jensen-Shannon divergence of two answers [b c], given as logits."""
    one, other = first.log_softmax(-1), second.log_softmax(-1)
    middle = ((one.exp() + other.exp()) / 2).clamp(min=1e-30).log()
    divergences = (one.exp() * (one - middle) + other.exp() * (other - middle)).sum(-1) / 2
    return divergences.mean()


def human_loss(output: RationalizerOutput, gold: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of the last selection with what people marked; `known` [b]: texts where they did."""
    margin = output.margins[-1]
    counted = output.real & known[:, None]
    losses = functional.binary_cross_entropy_with_logits(margin, gold.to(margin), reduction="none")
    return (losses * counted).sum() / counted.sum().clamp(min=1)


def rationalizer_loss(
    output: RationalizerOutput,
    labels: torch.Tensor,
    config: RationalizerConfig,
    weights: LossWeights,
    *,
    judge_selection: bool = True,
    gold: torch.Tensor | None = None,
    known: torch.Tensor | None = None,
    label_std: float = 1.0,
) -> torch.Tensor:
    """The loss of a batch; in warm-up the selection itself is not judged."""
    loss = weights.rationale * prediction_loss(output.logits, labels, label_std)
    if output.full_logits is not None:
        loss = loss + weights.full_text * prediction_loss(output.full_logits, labels, label_std)
    if output.soft_logits is not None:
        loss = loss + weights.rationale * prediction_loss(output.soft_logits, labels, label_std)
        if output.logits.shape[-1] > 1:
            loss = loss + weights.soft_predictor * jensen_shannon(output.soft_logits, output.logits)
    if judge_selection:
        loss = loss + weights.sparsity * sparsity_gap(output, config)
        for mask in output.masks:
            loss = loss + weights.coherence * coherence(mask, output.real)
    if weights.human and gold is not None and known is not None:
        loss = loss + weights.human * human_loss(output, gold, known)
    return loss
