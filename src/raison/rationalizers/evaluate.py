"""Evaluates a rationalizer: accuracy, F1 or correlation, shares of tokens, agreement with human rationales."""

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
from raison.training.training_folder import checkpoint_tensors_on_cpu

__all__ = ["commonest_share", "evaluate_rationalizer"]


def no_tokens_of_two_texts() -> torch.Tensor:
    return torch.zeros(2, 2, dtype=torch.float64)


@dataclass
class TokenCounts:
    """How many tokens of all texts so far are kept, marked by people, or both."""

    words: float = 0.0
    kept: float = 0.0
    kept_by_first: float = 0.0
    # kept and all of the first and of the second text
    by_text: torch.Tensor = field(default_factory=no_tokens_of_two_texts)
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
            kept_of_text = rationale & text
            self.by_text[number] += torch.stack([kept_of_text.sum(), text.sum()])

        gold, known = human_marks(lines)
        counted = output.real & known[:, None]
        selected = rationale & counted
        marked = gold & counted
        both = selected & marked
        self.selected += float(selected.sum())
        self.marked += float(marked.sum())
        self.selected_and_marked += float(both.sum())

    def text_sparsities(self) -> tuple[float, ...]:
        """The share that is kept of each text of pairs; nothing for single texts."""
        if not self.by_text[1, 1]:
            return ()
        shares = self.by_text[:, 0] / self.by_text[:, 1]
        return tuple(shares.tolist())

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
    counts = TokenCounts()
    answers, full_text_answers, labels, empty, full = [], [], [], [], []
    for batch, inputs in sorted_batches(lines, pad, device=model.device):
        rationale = None
        if every_token:
            rationale = torch.ones_like(inputs["input_ids"])
        # where gold is; and not every device has the precision that is counted in
        on_device = model(**inputs, rationale=rationale, full=not every_token)
        output = RationalizerOutput(**checkpoint_tensors_on_cpu(on_device))
        counts.add(output, batch)
        answers.append(output.logits.double())
        labels.append(torch.tensor([line.label for line in batch], dtype=torch.float64))
        if output.full_logits is not None:
            full_text_answers.append(output.full_logits.double())
        kept = output.rationale.bool().sum(1)
        words = output.real.sum(1)
        is_empty = output.empty | (kept == 0)
        is_full = (kept == words) & (words > 1)
        empty.append(is_empty.double())
        full.append(is_full.double())

    wanted = torch.cat(labels)
    from_full_text = None
    if full_text_answers:
        from_full_text = quality_of_answers(torch.cat(full_text_answers), wanted)
    return RationalizerScores(
        from_rationale=quality_of_answers(torch.cat(answers), wanted),
        from_full_text=from_full_text,
        sparsity=counts.kept / max(counts.words, 1),
        first_sparsity=counts.kept_by_first / max(counts.words, 1),
        text_sparsities=counts.text_sparsities(),
        empty=float(torch.cat(empty).mean()),
        full=float(torch.cat(full).mean()),
        human=counts.human_agreement(),
    )


def quality_of_answers(answers: torch.Tensor, labels: torch.Tensor) -> Quality:
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
        correlations = torch.corrcoef(torch.stack([values, labels]))
        correlation = float(correlations[0, 1])
    errors = (values - labels).square()
    errors_of_the_mean = (labels - labels.mean()).square()
    return RegressionQuality(
        error=float(errors.mean()),
        error_of_the_mean=float(errors_of_the_mean.mean()),
        correlation=correlation,
    )


def commonest_share(lines: LabelledLines) -> float:
    """The accuracy of always predicting the commonest label of the development part; 0 of a regression."""
    if not lines.labels:
        return 0.0
    counts = np.bincount([int(line.label) for line in lines.parts["dev"]])
    return float(counts.max() / counts.sum())
