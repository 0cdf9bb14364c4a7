"""Adversaries that are trained on a data set, with their losses: another attention for every text, the same answers.

Wiegreffe & Pinter (2019); P2 App. C: an adversary is trained with TVD(ŷ, ŷ') − λ · JSD(α, α') on the base model's own
answers ŷ and attention α. Frozen: only its attention moves. Unfrozen: a new model over the same word vectors. TVD is
that of all classes.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from raison.attention_models.adapter import AttentionModel
from raison.attention_models.build import new_classifier
from raison.attention_models.evaluate import evaluate_classifier
from raison.attention_models.module import AttentionClassifier
from raison.models.load import model_on_device
from raison.studies.audit.audit_numbers import AuditRecord
from raison.studies.audit.divergence import jsd, tvd
from raison.training.feed import BatchFeed
from raison.training.fit import TrainingStopped, fit
from raison.training.fit_settings import FitSettings
from raison.training.labelled_lines import LabelledLine, padded_lines

__all__ = ["Adversary", "train_adversary"]


@dataclass(frozen=True, eq=False)
class Adversary(AuditRecord):
    """What a trained adversary reaches on texts that it was not trained on."""

    kind: str  # frozen or unfrozen
    lam: float
    jsd: float
    tvd: float
    accuracy: float
    f1: float


@dataclass(frozen=True)
class BaseAnswer:
    """What the base model says about one line; its states only where an adversary needs them."""

    probabilities: torch.Tensor  # [c]
    attention: torch.Tensor  # [t]
    states: torch.Tensor | None = None  # [t d]
    real: torch.Tensor | None = None  # [t] the words among them


def train_adversary(
    model: AttentionModel,
    train: Sequence[LabelledLine],
    test: Sequence[LabelledLine],
    *,
    kind: str,
    lam: float,
    epochs: int = 15,
    batch: int = 32,
    lr: float = 1e-3,
    seed: int = 0,
    folder: Path | None = None,
) -> Adversary:
    """Train an adversary on the base model's own answers and attention, and measure it on the test texts.

    Checkpoints are in the `folder` while it learns; where there is none, a run that is stopped is lost.
    """
    base: AttentionClassifier = model.hf
    adversary, moving = untrained_adversary(model, kind, seed)
    loss = frozen_loss if kind == "frozen" else unfrozen_loss
    answers = base_answers(base, train, states=kind == "frozen")

    def mean_loss(learner: Any, lines: Sequence[LabelledLine], part: int) -> torch.Tensor:
        answers_of_lines = []
        for line in lines:
            answers_of_lines.append(answers[id(line)])
        return loss(learner, lines, answers_of_lines, lam)

    batch = min(batch, len(train))
    feed = BatchFeed(train, batch, seed)
    with tempfile.TemporaryDirectory() as nowhere:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        fit_settings = FitSettings(
            out=Path(nowhere) if folder is None else folder,
            steps=epochs * (len(train) // batch),
            seed=seed,
            schedule="constant",
            warm=0.0,
            clip=5.0,
            decay=1e-5,
            save_every=1e9 if folder is None else 60.0,
        )
        try:
            fit(adversary, [{"params": moving, "peak": lr}], feed, mean_loss, fit_settings)
        except TrainingStopped as error:
            if folder is None:
                raise TrainingStopped(
                    "Stopped; nothing of this audit is kept: with --keep FOLDER it could go on."
                ) from error
            raise

    attention_divergence, answer_distance = mean_divergences_of_adversary(base, adversary, test)
    quality = evaluate_classifier(adversary, test)
    if folder is not None:
        shutil.rmtree(folder)
    return Adversary(
        kind=kind,
        lam=lam,
        jsd=attention_divergence,
        tvd=answer_distance,
        accuracy=quality.accuracy,
        f1=quality.f1,
    )


def untrained_adversary(
    model: AttentionModel, kind: str, seed: int
) -> tuple[AttentionClassifier, list[torch.nn.Parameter]]:
    """An adversary before its first step, and the weights of it that move."""
    base: AttentionClassifier = model.hf
    new = new_classifier(
        base.settings, model.tokenizer, model.labels, base.words.weight.detach(), seed + 1
    )
    new = model_on_device(new, base.device)
    if kind == "frozen":
        adversary = copy.deepcopy(base)
        # from the base's own attention nothing would ever move: JSD and TVD are both at rest there
        adversary.scorer = new.scorer
        moving = list(adversary.scorer.parameters())
    else:
        adversary = new
        moving = []
        for name, weight in adversary.named_parameters():
            if name != "words.weight":
                moving.append(weight)

    adversary.requires_grad_(False)
    for parameter in moving:
        parameter.requires_grad_()
    return adversary, moving


def frozen_loss(
    learner: AttentionClassifier,
    lines: Sequence[LabelledLine],
    answers: Sequence[BaseAnswer],
    lam: float,
) -> torch.Tensor:
    """TVD − λ · JSD of an adversary whose hidden states are the base's."""
    states = padded_rows_of_adversary([answer.states for answer in answers])
    real = padded_rows_of_adversary([answer.real for answer in answers])
    logits, weights = states_with_other_attention(learner, states, real)
    return adversarial_loss(logits, weights, answers, lam)


def unfrozen_loss(
    learner: AttentionClassifier,
    lines: Sequence[LabelledLine],
    answers: Sequence[BaseAnswer],
    lam: float,
) -> torch.Tensor:
    """TVD − λ · JSD of a new model."""
    ids, present, _ = padded_lines(lines, device=learner.device)
    output = learner(ids, attention_mask=present)
    return adversarial_loss(output.logits, output.weights, answers, lam)


def adversarial_loss(
    logits: torch.Tensor, weights: torch.Tensor, answers: Sequence[BaseAnswer], lam: float
) -> torch.Tensor:
    """The mean of TVD(ŷ, ŷ') − λ · JSD(α, α') over texts."""
    probabilities = padded_rows_of_adversary([answer.probabilities for answer in answers])
    attention = padded_rows_of_adversary([answer.attention for answer in answers])
    distance = tvd(logits.softmax(-1), probabilities)
    divergence = jsd(weights, attention)
    return (distance - lam * divergence).mean()


def padded_rows_of_adversary(rows: Sequence[torch.Tensor | None]) -> torch.Tensor:
    """[b ..] rows of several lines, padded with zeros to one length."""
    return pad_sequence([row for row in rows if row is not None], batch_first=True)


def states_with_other_attention(
    model: AttentionClassifier, read: torch.Tensor, real: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits [b c] and attention [b t] of a model on states [b t d] that are already there."""
    weights = model.normalizer(model.scorer(read), real)
    context = (weights[:, None, :] @ read)[:, 0]
    return model.decoder(context), weights


@torch.no_grad()
def base_answers(
    base: AttentionClassifier, lines: Sequence[LabelledLine], batch: int = 256, states: bool = False
) -> dict[int, BaseAnswer]:
    """Line, by its identity -> the base's answer: asked once, not in every epoch."""
    answers = {}
    by_length = sorted(lines, key=lambda line: len(line.ids))
    for start in range(0, len(by_length), batch):
        part = by_length[start : start + batch]
        ids, present, _ = padded_lines(part, device=base.device)
        output = base(ids, attention_mask=present)
        probabilities = output.logits.softmax(-1)
        for row, line in enumerate(part):
            tokens = slice(len(line.ids))
            answers[id(line)] = BaseAnswer(
                probabilities=probabilities[row],
                attention=output.weights[row, tokens],
                states=output.read[row, tokens] if states else None,
                real=output.real[row, tokens] if states else None,
            )
    return answers


@torch.inference_mode()
def mean_divergences_of_adversary(
    base: AttentionClassifier,
    adversary: AttentionClassifier,
    lines: Sequence[LabelledLine],
    batch: int = 256,
) -> tuple[float, float]:
    """Mean JSD of attentions and mean TVD of answers."""
    divergences, distances = [], []
    for start in range(0, len(lines), batch):
        ids, present, _ = padded_lines(lines[start : start + batch], device=base.device)
        own = base(ids, attention_mask=present)
        other = adversary(ids, attention_mask=present)
        divergences.append(jsd(own.weights, other.weights))
        distances.append(tvd(own.logits.softmax(-1), other.logits.softmax(-1)))
    return float(torch.cat(divergences).mean()), float(torch.cat(distances).mean())
