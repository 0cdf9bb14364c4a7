"""The loss of a rationalizer and its terms: prediction, sparsity, coherence, Jensen-Shannon, human rationales (P1).

    loss = 2 · CE(rationale) + 1 · CE(full text) + λ_s Σ_i |share_i − ℓ_i| + λ_c Σ_i coherence_i
           (+ λ_j JSD(soft, hard): A2R)    (+ λ_h · cross-entropy with human rationales: the supervised variant)

P1's code writes CE + 2 CE_full + (CE − CE_full), which is the same. Shares and coherence are of real tokens, so padding
does not change them.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from raison.rationalizers.config import LossWeights, RationalizerConfig, pruning_levels
from raison.rationalizers.output import RationalizerOutput

__all__ = [
    "coherence",
    "kept_shares_for_sparsity",
    "prediction_loss",
    "rationalizer_loss",
    "sparsity_gap",
]


def kept_shares_for_sparsity(
    mask: torch.Tensor, output: RationalizerOutput, texts: int
) -> list[torch.Tensor]:
    """Share of the real tokens of a batch that is kept; of a pair, in each text."""
    if texts == 1:
        kept = mask.sum()
        words = output.real.sum()
        return [kept / words.clamp(min=1)]
    shares = []
    for number in range(texts):
        in_text = output.side == number
        words_of_text = output.real & in_text
        share = mean_over_counted(mask, words_of_text)
        shares.append(share)
    return shares


def mean_over_counted(values: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """The mean of the values where `counted` is true; 0 where it is nowhere."""
    total = (values * counted).sum()
    count = counted.sum()
    return total / count.clamp(min=1)


def sparsity_gap(output: RationalizerOutput, config: RationalizerConfig) -> torch.Tensor:
    """Σ_i |share_i − ℓ_i| over pruning blocks (and texts)."""
    levels = [pruning_levels(share, config.pruning) for share in config.sparsity]
    texts = len(levels)
    gaps = []
    for number, mask in enumerate(output.masks):
        shares = kept_shares_for_sparsity(mask, output, texts)
        for share, levels_of_text in zip(shares, levels, strict=True):
            level = levels_of_text[number]
            gap = share - level
            gaps.append(gap.abs())
    all_gaps = torch.stack(gaps)
    return all_gaps.sum()


def coherence(mask: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """How often a neighbour is treated otherwise: the mean of |m_t − m_{t−1}| over real neighbours."""
    is_real = real[:, 1:]
    was_real = real[:, :-1]
    both_real = is_real & was_real
    kept = mask[:, 1:]
    kept_before = mask[:, :-1]
    steps = kept - kept_before
    return mean_over_counted(steps.abs(), both_real)


def prediction_loss(
    logits: torch.Tensor, labels: torch.Tensor, label_std: float = 1.0
) -> torch.Tensor:
    """Cross-entropy of classes; squared error of a regression, in units of its labels' standard deviation."""
    is_regression = logits.shape[-1] == 1
    if is_regression:
        predicted = logits[:, 0] / label_std
        wanted = labels.to(logits) / label_std
        return functional.mse_loss(predicted, wanted)
    classes = labels.long()
    return functional.cross_entropy(logits, classes)


def jensen_shannon(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Mean Jensen-Shannon divergence of two answers [b c], given as logits."""
    one = first.log_softmax(-1)
    other = second.log_softmax(-1)
    mean = (one.exp() + other.exp()) / 2
    positive_mean = mean.clamp(min=1e-30)
    middle = positive_mean.log()
    from_one = one.exp() * (one - middle)
    from_other = other.exp() * (other - middle)
    from_both = from_one + from_other
    divergences = from_both.sum(-1) / 2
    return divergences.mean()


def human_loss(output: RationalizerOutput, gold: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of the last selection with what people marked; `known` [b]: texts where they did."""
    margin = output.margins[-1]
    wanted = gold.to(margin)
    losses = functional.binary_cross_entropy_with_logits(margin, wanted, reduction="none")
    counted = output.real & known[:, None]
    return mean_over_counted(losses, counted)


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
    from_rationale = prediction_loss(output.logits, labels, label_std)
    loss = weights.rationale * from_rationale
    if output.full_logits is not None:
        from_full_text = prediction_loss(output.full_logits, labels, label_std)
        loss = loss + weights.full_text * from_full_text
    if output.soft_logits is not None:
        from_soft = prediction_loss(output.soft_logits, labels, label_std)
        loss = loss + weights.rationale * from_soft
        has_classes = output.logits.shape[-1] > 1
        if has_classes:
            divergence = jensen_shannon(output.soft_logits, output.logits)
            loss = loss + weights.soft_predictor * divergence
    if judge_selection:
        gap = sparsity_gap(output, config)
        loss = loss + weights.sparsity * gap
        for mask in output.masks:
            changes = coherence(mask, output.real)
            loss = loss + weights.coherence * changes
    if weights.human and gold is not None and known is not None:
        from_people = human_loss(output, gold, known)
        loss = loss + weights.human * from_people
    return loss
