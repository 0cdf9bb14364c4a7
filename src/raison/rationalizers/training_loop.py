"""The training of a rationalizer on texts that are read: loss, calibration, the best epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from raison.rationalizers.batching import batch_inputs, human_marks, sorted_batches
from raison.rationalizers.calibration import calibrate
from raison.rationalizers.config import RationalizerConfig
from raison.rationalizers.evaluate import commonest_share, evaluate_rationalizer
from raison.rationalizers.losses import rationalizer_loss
from raison.rationalizers.module import Rationalizer
from raison.rationalizers.report import troubles
from raison.rationalizers.training_config import RationalizerTraining
from raison.training.early_stopping import BestEpochKeeper
from raison.training.feed import BatchFeed
from raison.training.fit import fit
from raison.training.fit_settings import FitProgress, FitSettings
from raison.training.labelled_lines import LabelledLine, LabelledLines
from raison.training.seeds import seeded_generator

__all__ = ["BatchLoss", "fit_rationalizer"]

CALIBRATED = 1000  # training texts that the line between keeping and dropping is drawn on
SAMPLE_SEED, WARM_UP_SEED = 4, 21  # what randomness is for, so that no two draws are the same


@dataclass
class BatchLoss:
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
    loss = BatchLoss(
        model, config, training, pad=pad, warm_steps=round(training.warm * epoch), seed=seed
    )
    order = np.random.default_rng([seed, SAMPLE_SEED]).permutation(
        len(train)
    )  # files are often sorted by label
    sample = [train[number] for number in order[:CALIBRATED]]

    def calibrate_on_sample() -> None:
        calibrate(
            model, lambda: (batch for _, batch in sorted_batches(sample, pad, device=model.device))
        )

    def look() -> dict[str, Any]:
        with torch.autocast(model.device.type, torch.bfloat16, enabled=training.bfloat16):
            calibrate_on_sample()
            return scores_of_epoch(model, lines, pad, selection_counts=loss.steps > loss.warm_steps)

    course = FitSettings(
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
    fitted = fit(
        model,
        parameter_groups(model, training),
        feed,
        loss,
        course,
        best.looking(model, look),
        best.enough,
    )
    best.restore(model)
    if training.bfloat16:  # whoever opens the model computes more precisely
        calibrate_on_sample()
    return fitted


def scores_of_epoch(
    model: Rationalizer, lines: LabelledLines, pad: int, *, selection_counts: bool
) -> dict[str, Any]:
    """The scores of the development part, the one that the best epoch is chosen by, and what goes wrong.

    In warm-up nothing is learned about what to select: such an epoch can't be the best.
    """
    scores = evaluate_rationalizer(model, lines.parts["dev"], pad)
    every_token = evaluate_rationalizer(
        model, lines.parts["dev"], pad, every_token=True
    ).from_rationale
    name = "accuracy" if lines.labels else "correlation"
    numbers: dict[str, Any] = {**scores.to_dict(), f"every_token_{name}": every_token.score}
    numbers["score"] = scores.from_rationale.score if selection_counts else None
    if selection_counts:
        trouble = troubles(scores, every_token, commonest_share(lines))
        if trouble:
            numbers["trouble"] = "; ".join(trouble)
    return numbers


def parameter_groups(model: Rationalizer, training: RationalizerTraining) -> list[dict[str, Any]]:
    """What is trained, with its peak rate: blocks that were trained before, and what is fresh."""
    moving = [parameter for parameter in model.parameters() if parameter.requires_grad]
    fresh = {
        id(parameter)
        for part in (model.selector, model.classifier)
        for parameter in part.parameters()
    }
    if model.settings.encoder == "gru":
        fresh = {id(parameter) for parameter in model.parameters()}
    groups = [
        {"params": [p for p in moving if id(p) not in fresh], "peak": training.lr},
        {"params": [p for p in moving if id(p) in fresh], "peak": training.head_lr},
    ]
    return [group for group in groups if group["params"]]
