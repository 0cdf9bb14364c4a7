"""Fits a rationalizer to texts that are read: loss of a batch, warm-up, calibration, scores and best epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from raison.rationalizers.batching import batch_inputs, human_marks, sorted_batches
from raison.rationalizers.calibration import calibrate_selector
from raison.rationalizers.config import RationalizerConfig, RationalizerTraining
from raison.rationalizers.evaluate import commonest_share, evaluate_rationalizer
from raison.rationalizers.losses import rationalizer_loss
from raison.rationalizers.module import Rationalizer
from raison.rationalizers.report import troubles
from raison.training.early_stopping import BestEpochKeeper
from raison.training.feed import BatchFeed
from raison.training.fit import fit
from raison.training.fit_settings import FitProgress, FitSettings, Measurements, ParameterGroup
from raison.training.labelled_lines import LabelledLine, LabelledLines
from raison.training.seeds import seeded_generator

__all__ = ["RationalizerBatchLoss", "fit_rationalizer"]

CALIBRATED = 1000  # training texts that the line between keeping and dropping is drawn on
SAMPLE_SEED, WARM_UP_SEED = 4, 21  # what randomness is for, so that no two draws are the same


@dataclass
class RationalizerBatchLoss:
    """The loss of a batch; in warm-up the predictor reads random parts."""

    model: Rationalizer
    config: RationalizerConfig
    training: RationalizerTraining
    pad: int
    warm_steps: int
    seed: int
    steps: int = 0  # so far

    def __call__(
        self, _: torch.nn.Module, lines: Sequence[LabelledLine], part: int
    ) -> torch.Tensor:
        model, device = self.model, self.model.device
        inputs = batch_inputs(lines, self.pad, device)
        labels = torch.tensor([line.label for line in lines], device=device)
        warming_up = part < self.warm_steps
        self.steps = part + 1
        rationale = None
        if warming_up:
            random = seeded_generator(self.seed, part, WARM_UP_SEED)
            rationale = self.random_part(inputs["input_ids"].shape, random).to(device)
        output = model(**inputs, rationale=rationale)
        gold, known = human_marks(lines)
        return rationalizer_loss(
            output,
            labels,
            self.config,
            self.training.weights,
            judge_selection=not warming_up,
            gold=gold.to(device),
            known=known.to(device),
            label_std=model.config.label_std,
        )

    def random_part(self, shape: torch.Size, random: torch.Generator) -> torch.Tensor:
        """[b t] of each text a random share, so that the predictor can read parts before it gets the model's."""
        least = min(self.config.sparsity)
        shares = least + (1 - least) * torch.rand(shape[0], 1, generator=random)
        return torch.rand(shape, generator=random) < shares


def fit_rationalizer(
    model: Rationalizer,
    lines: LabelledLines,
    config: RationalizerConfig,
    training: RationalizerTraining,
    folder: Path,
    *,
    seed: int,
    name: str,
    pad: int,
) -> FitProgress:
    """Train to the epoch with the best accuracy (of a regression: correlation) of the development part."""
    train = lines.parts["train"]
    epoch = len(train) // training.batch  # steps
    settings = {
        **config.to_dict(),
        **training.to_dict(),
        "data": lines.content(),
        "seed": seed,
        "model": name,
    }
    best = BestEpochKeeper(folder, settings, "score", training.patience)
    loss = RationalizerBatchLoss(
        model, config, training, pad=pad, warm_steps=round(training.warm * epoch), seed=seed
    )
    sample = calibration_sample(train, seed)

    def calibrate_on_sample() -> None:
        calibrate_selector(
            model, lambda: (batch for _, batch in sorted_batches(sample, pad, device=model.device))
        )

    def look() -> Measurements:
        with torch.autocast(model.device.type, torch.bfloat16, enabled=training.bfloat16):
            calibrate_on_sample()
            return scores_of_epoch(model, lines, pad, selection_counts=loss.steps > loss.warm_steps)

    fit_settings = FitSettings(
        out=folder,
        steps=training.epochs * epoch,
        settings=settings,
        seed=seed,
        clip=training.clip,
        decay=training.weight_decay,
        every=epoch,
        bfloat16=training.bfloat16,
    )
    feed = BatchFeed(train, training.batch, seed)
    groups = rationalizer_parameter_groups(model, training)
    fitted = fit(
        model, groups, feed, loss, fit_settings, best.look_and_keep(model, look), best.should_stop
    )
    best.restore(model)
    if training.bfloat16:  # whoever opens the model computes more precisely
        calibrate_on_sample()
    return fitted


def calibration_sample(train: Sequence[LabelledLine], seed: int) -> list[LabelledLine]:
    """Some training texts, in random order: files are often sorted by label."""
    order = np.random.default_rng([seed, SAMPLE_SEED]).permutation(len(train))
    return [train[number] for number in order[:CALIBRATED]]


def scores_of_epoch(
    model: Rationalizer, lines: LabelledLines, pad: int, *, selection_counts: bool
) -> Measurements:
    """The scores of the development part, the one that the best epoch is chosen by, and what goes wrong.

    In warm-up nothing is learned about what to select: such an epoch can't be the best.
    """
    scores = evaluate_rationalizer(model, lines.parts["dev"], pad)
    every_token = evaluate_rationalizer(
        model, lines.parts["dev"], pad, every_token=True
    ).from_rationale
    name = "accuracy" if lines.labels else "correlation"
    numbers: Measurements = {**scores.to_dict(), f"every_token_{name}": every_token.score}
    numbers["score"] = None
    if selection_counts:
        numbers["score"] = scores.from_rationale.score
        trouble = troubles(scores, every_token, commonest_share(lines))
        if trouble:
            numbers["trouble"] = "; ".join(trouble)
    return numbers


def rationalizer_parameter_groups(
    model: Rationalizer, training: RationalizerTraining
) -> list[ParameterGroup]:
    """What is trained, with its peak rate: blocks that were trained before, and what is fresh."""
    fresh = {id(parameter) for parameter in model.selector.parameters()}
    fresh |= {id(parameter) for parameter in model.classifier.parameters()}
    if model.settings.encoder == "gru":
        fresh = {id(parameter) for parameter in model.parameters()}

    trained_before, trained_anew = [], []
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        if id(parameter) in fresh:
            trained_anew.append(parameter)
        else:
            trained_before.append(parameter)
    groups: list[ParameterGroup] = []
    if trained_before:
        groups.append({"params": trained_before, "peak": training.lr})
    if trained_anew:
        groups.append({"params": trained_anew, "peak": training.head_lr})
    return groups
