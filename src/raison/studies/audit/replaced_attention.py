"""Scores of a classifier with replaced attention: equal weights for all words, or shuffled ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.json_record import record_field
from raison.metrics.attention import permuted_attention, uniform_attention
from raison.studies.audit.audit_numbers import AuditRecord, measured_audit_numbers
from raison.studies.audit.audited_texts import AttentiveTexts

__all__ = ["ReplacedAttention", "ReplacedScores", "scores_with_replaced_attention"]

SHUFFLE_SEED = 100_003  # more than there are texts, so that no two shuffles share a seed


@dataclass(frozen=True, eq=False)
class ReplacedScores(AuditRecord):
    """Accuracy and F1 with other attention (means over its versions), and how far they fall."""

    accuracy: float
    f1: float
    accuracy_drop: float
    f1_drop: float
    versions: int = 1


@dataclass(frozen=True, eq=False)
class ReplacedAttention(AuditRecord):
    """Scores with uniform attention, and with shuffled weights."""

    uniform: ReplacedScores | None = record_field("ReplacedScores", default=None)
    permuted: ReplacedScores | None = record_field("ReplacedScores", default=None)

    def by_title(self) -> dict[str, ReplacedScores]:
        """What was measured, by what people call it."""
        named = {"uniform": self.uniform, "permuted": self.permuted}
        return measured_audit_numbers(named)


def scores_with_replaced_attention(texts: AttentiveTexts, permutations: int) -> ReplacedAttention:
    """Accuracy and F1 with uniform attention and with shuffled weights (the mean over so many shuffles)."""
    lengths = [len(encoding) for encoding in texts.encodings]
    masks = []
    for length, real in zip(lengths, texts.real, strict=True):
        masks.append(np.isin(np.arange(length), real))
    uniform = [uniform_attention(mask) for mask in masks]

    own = texts.model.own(texts.encodings)
    shuffled = []
    for number in range(permutations):
        weights = []
        for index, (row, mask) in enumerate(zip(own, masks, strict=True)):
            seed = 1 + texts.seed + SHUFFLE_SEED * number + index
            weights.append(permuted_attention(row, mask, seed=seed))
        shuffled.append(weights)
    return ReplacedAttention(
        uniform=mean_scores_with_attention(texts, [uniform]),
        permuted=mean_scores_with_attention(texts, shuffled),
    )


def mean_scores_with_attention(
    texts: AttentiveTexts, versions: Sequence[Sequence[np.ndarray]]
) -> ReplacedScores:
    """Means over several versions of all texts' attention."""
    accuracies = []
    f1s = []
    for weights in versions:
        answers = predictions_with_replaced_attention(texts, weights)
        accuracies.append(texts.accuracy(answers))
        f1s.append(texts.f1(answers))
    accuracy = float(np.mean(accuracies))
    f1 = float(np.mean(f1s))
    return ReplacedScores(
        accuracy=accuracy,
        f1=f1,
        accuracy_drop=texts.accuracy(texts.predicted) - accuracy,
        f1_drop=texts.f1(texts.predicted) - f1,
        versions=len(versions),
    )


def predictions_with_replaced_attention(
    texts: AttentiveTexts, weights: Sequence[np.ndarray]
) -> np.ndarray:
    """[n] the predicted classes with other attention; of a text without words no attention can be replaced."""
    predicted: np.ndarray = texts.predicted.copy()
    rows = zip(weights, texts.real, texts.word_logits, strict=True)
    for number, (row, real, word_logits) in enumerate(rows):
        if len(real):
            logits = row[real] @ word_logits
            predicted[number] = logits.argmax()
    return predicted
