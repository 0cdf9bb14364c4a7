"""Evaluates an attention classifier: loss, accuracy and F1 on labelled texts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional

from raison.attention_models.module import AttentionClassifier
from raison.attention_models.report import ClassifierScores
from raison.training.f1 import f1_of_classes
from raison.training.labelled_lines import LabelledLine, padded_lines

__all__ = ["evaluate_classifier"]


@torch.inference_mode()
def evaluate_classifier(
    model: AttentionClassifier, lines: Sequence[LabelledLine], batch: int = 256
) -> ClassifierScores:
    """Loss, accuracy and F1 (of the second class where there are two, else the mean over classes)."""
    by_length = sorted(lines, key=len)
    predictions, labels, losses = [], [], []
    for start in range(0, len(by_length), batch):
        ids, present, wanted = padded_lines(by_length[start : start + batch], device=model.device)
        logits = model(ids, attention_mask=present).logits
        losses.append(functional.cross_entropy(logits, wanted, reduction="none"))
        predictions.append(logits.argmax(-1))
        labels.append(wanted)

    predicted = torch.cat(predictions).cpu().numpy()
    true = torch.cat(labels).cpu().numpy()
    return ClassifierScores(
        loss=float(torch.cat(losses).mean()),
        accuracy=float((predicted == true).mean()),
        f1=f1_of_classes(predicted, true, model.num_labels),
    )
