"""How well a rationalizer predicts and selects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from raison.rationalizers.batching import human_marks, sorted_batches
from raison.rationalizers.module import Rationalizer
from raison.rationalizers.output import RationalizerOutput
from raison.rationalizers.report import (
    ClassQuality,
    HumanAgreement,
    Quality,
    RationalizerScores,
    RegressionQuality,
)
from raison.rationalizers.selection import tokens_by_text
from raison.training.f1 import f1_of_classes
from raison.training.labelled_lines import LabelledLine, LabelledLines
from raison.training.training_folder import tensors_on_cpu

__all__ = ["commonest_share", "evaluate_rationalizer"]


@dataclass
class Counts:
    """Tokens of all texts so far."""

    words: float = 0.0
    kept: float = 0.0
    kept_by_first: float = 0.0
    by_text: torch.Tensor = field(
        default_factory=lambda: torch.zeros(2, 2, dtype=torch.float64)
    )  # kept and all
    # of texts where people marked tokens
    selected: float = 0.0
    marked: float = 0.0
    selected_and_marked: float = 0.0

    def add(self, output: RationalizerOutput, lines: Sequence[LabelledLine]) -> None:
        """Count the tokens of a batch."""
        rationale = output.rationale.bool()
        self.words += float(output.real.sum())
        self.kept += float(rationale.sum())
        self.kept_by_first += float(output.masks[0].sum())
        for number, text in enumerate(tokens_by_text(output.real, output.side)):
            self.by_text[number] += torch.stack([(rationale & text).sum(), text.sum()])

        gold, known = human_marks(lines)
        counted = output.real & known[:, None]
        self.selected += float((rationale & counted).sum())
        self.marked += float((gold & counted).sum())
        self.selected_and_marked += float((rationale & gold & counted).sum())

    def text_sparsities(self) -> tuple[float, ...]:
        """The share that is kept of each text of pairs; nothing for single texts."""
        if not self.by_text[1, 1]:
            return ()
        return tuple((self.by_text[:, 0] / self.by_text[:, 1]).tolist())

    def human_agreement(self) -> HumanAgreement | None:
        """How far selected tokens are those that people marked."""
        if not self.marked:
            return None
        return HumanAgreement(
            precision=self.selected_and_marked / max(self.selected, 1),
            recall=self.selected_and_marked / self.marked,
            f1=2 * self.selected_and_marked / max(self.selected + self.marked, 1),
        )


@torch.inference_mode()
def evaluate_rationalizer(
    model: Rationalizer, lines: Sequence[LabelledLine], pad: int, *, every_token: bool = False
) -> RationalizerScores:
    """What a rationalizer predicts and selects when it has to decide; or its predictor reads every token."""
    model.eval()
    counts = Counts()
    answers, full_text_answers, labels, empty, full = [], [], [], [], []
    for batch, inputs in sorted_batches(lines, pad, device=model.device):
        rationale = torch.ones_like(inputs["input_ids"]) if every_token else None
        # where gold is; and not every device has the precision that is counted in
        on_device = model(**inputs, rationale=rationale, full=not every_token)
        output = RationalizerOutput(**tensors_on_cpu(on_device))
        counts.add(output, batch)
        answers.append(output.logits.double())
        labels.append(torch.tensor([line.label for line in batch], dtype=torch.float64))
        if output.full_logits is not None:
            full_text_answers.append(output.full_logits.double())
        kept, words = output.rationale.bool().sum(1), output.real.sum(1)
        empty.append((output.empty | (kept == 0)).double())
        full.append(((kept == words) & (words > 1)).double())

    wanted = torch.cat(labels)
    return RationalizerScores(
        from_rationale=quality_of(torch.cat(answers), wanted),
        from_full_text=quality_of(torch.cat(full_text_answers), wanted)
        if full_text_answers
        else None,
        sparsity=counts.kept / max(counts.words, 1),
        first_sparsity=counts.kept_by_first / max(counts.words, 1),
        text_sparsities=counts.text_sparsities(),
        empty=float(torch.cat(empty).mean()),
        full=float(torch.cat(full).mean()),
        human=counts.human_agreement(),
    )


def quality_of(answers: torch.Tensor, labels: torch.Tensor) -> Quality:
    """Accuracy and F1 of classes; error and correlation of a regression."""
    if answers.shape[-1] > 1:
        predicted = answers.argmax(-1).numpy()
        true = labels.long().numpy()
        return ClassQuality(
            accuracy=float((predicted == true).mean()),
            f1=f1_of_classes(predicted, true, answers.shape[-1]),
        )
    values = answers[:, 0]
    correlation = 0.0
    if len(labels) > 1 and values.std() > 0 and labels.std() > 0:
        correlation = float(torch.corrcoef(torch.stack([values, labels]))[0, 1])
    return RegressionQuality(
        error=float((values - labels).square().mean()),
        error_of_the_mean=float((labels - labels.mean()).square().mean()),
        correlation=correlation,
    )


def commonest_share(lines: LabelledLines) -> float:
    """The accuracy of always predicting the commonest label of the development part; 0 of a regression."""
    if not lines.labels:
        return 0.0
    counts = np.bincount([int(line.label) for line in lines.parts["dev"]])
    return float(counts.max() / counts.sum())
