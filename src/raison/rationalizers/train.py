"""Train a rationalizer: labels only; what it selects is watched while it trains, and the asked share is reached."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import InputError
from raison.core.json_record import to_json_value
from raison.core.parameters import check_choice, check_integer
from raison.core.records import Example
from raison.models.catalog.quiet_loading import quiet_transformers
from raison.models.codec import Pieces
from raison.models.load import model_on_device
from raison.models.weight_fingerprint import fingerprint_of_model
from raison.rationalizers.batching import pad_id, special_as_unknown, special_ids
from raison.rationalizers.build import (
    build_rationalizer,
    max_tokens,
    resolve_config,
    with_derived_settings,
)
from raison.rationalizers.config import VARIANTS, RationalizerConfig
from raison.rationalizers.encoders import LoadedEncoder, load_encoder
from raison.rationalizers.evaluate import commonest_share, evaluate_rationalizer
from raison.rationalizers.homogeneity import Homogeneity
from raison.rationalizers.module import Rationalizer
from raison.rationalizers.report import RationalizerReport, troubles
from raison.rationalizers.training_config import RationalizerTraining
from raison.rationalizers.training_loop import fit_rationalizer
from raison.training.data_names import fingerprint_of_data_file, name_of_labelled_data
from raison.training.fit_settings import SEEDS, FitProgress
from raison.training.labelled_lines import LabelledLines, read_labelled_lines
from raison.training.labelled_parts import examples_by_part, labels_of_parts
from raison.training.lora_training import wrap_with_lora, write_lora_adapter
from raison.training.multi_seed import REPORT, RepeatedTraining, train_with_seeds
from raison.training.training_folder import (
    BEST,
    CHECKPOINT,
    prepare_training_folder,
    write_training_file,
    writing_trained_model,
)

__all__ = ["train_rationalizer"]

MANY_BLOCKS = 1000  # where the number is not known yet, and everything else can be checked


@dataclass(frozen=True)
class Experiment:
    """What one training needs to know, whatever its seed and folder."""

    model: str | os.PathLike[str] | PreTrainedModel
    tokenizer: PreTrainedTokenizerBase | None
    data: str | Path | Sequence[Example]
    asked: Mapping[str, Any]  # settings of the config
    variant: str
    training: RationalizerTraining
    data_dir: str | Path | None
    limit: int | None
    skip_broken: bool
    regression: bool
    device: str | None
    command: str

    @property
    def in_memory(self) -> bool:
        return not isinstance(self.model, (str, os.PathLike))

    @property
    def model_name(self) -> str:
        """As `load_encoder` calls it."""
        if isinstance(self.model, (str, os.PathLike)):
            path = Path(self.model).expanduser()
            return path.name if path.is_dir() else str(self.model)
        return getattr(self.model.config, "_name_or_path", "") or type(self.model).__name__

    def made(self, report: Mapping[str, Any]) -> bool:
        """Whether a report is of this experiment."""
        wanted = {
            "model": self.model_name,
            "variant": self.variant,
            "data": name_of_labelled_data(self.data),
            "asked": to_json_value(self.asked),
            "training": self.training.to_dict(),
            "weights": fingerprint_of_model(self.model),
            "content": fingerprint_of_data_file(self.data),
            "limit": self.limit,
            "regression": self.regression,
        }
        return all(report[name] == value for name, value in wanted.items())


@dataclass(frozen=True)
class TrainingData:
    """Texts as token numbers, and what became of them."""

    lines: LabelledLines
    labels: tuple[str, ...]  # none of a regression
    left_out: dict[str, int]
    pairs: bool


def train_rationalizer(
    model: str | os.PathLike[str] | PreTrainedModel,
    data: str | Path | Sequence[Example],
    *,
    out: str | Path,
    config: Mapping[str, Any] | None = None,
    variant: str = "whole",
    training: RationalizerTraining | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    seed: int = 0,
    runs: int = 1,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    skip_broken: bool = False,
    regression: bool = False,
    device: str | None = None,
    command: str = "",
) -> RationalizerReport | RepeatedTraining:
    """Train a classifier that selects its rationale and predicts from that alone, and write it to the folder `out`.

    `model` is an encoder of BERT's kind: a name, a folder, or one in memory with its tokenizer; a fine-tuned classifier
    gives its encoder. `config` holds settings of `RationalizerConfig` beside those of the `variant`; where it does not
    say how many `blocks` generate, the homogeneity of token states decides. Human rationales in the data are not looked
    at unless the training gives them a weight. It is trained on `device` (default: where a model in memory is, or the
    CPU). Returns what training.json (of several runs: runs.json) holds.
    """
    check_choice("variant", variant, tuple(VARIANTS))
    asked = {**VARIANTS[variant], **(config or {})}
    # what is wrong is said at once
    RationalizerConfig.from_settings(
        with_derived_settings({**asked, "blocks": asked.get("blocks") or MANY_BLOCKS})
    )
    model_on_device(torch.empty(0), device)
    experiment = Experiment(
        model=model,
        tokenizer=tokenizer,
        data=data if isinstance(data, (str, Path)) else list(data),
        asked=asked,
        variant=variant,
        training=training or RationalizerTraining(),
        data_dir=data_dir,
        limit=limit,
        skip_broken=skip_broken,
        regression=regression,
        device=device,
        command=command,
    )
    if runs == 1:
        check_integer("seed", seed, 0, SEEDS)
        return train_run(experiment, Path(out), seed)

    def train_one(folder: Path, seed: int) -> dict[str, Any]:
        return train_run(experiment, folder, seed).to_dict()

    return RepeatedTraining.from_dict(
        train_with_seeds(train_one, Path(out), runs, seed, experiment.made)
    )


def train_run(experiment: Experiment, folder: Path, seed: int) -> RationalizerReport:
    """One run: a folder with weights, config, tokenizer and training.json."""
    prepare_training_folder(folder, REPORT)
    training = experiment.training
    if training.lora and experiment.in_memory:
        raise InputError(
            "An adapter names its model, and one in memory has no name: save it first, or leave lora away."
        )
    loaded = load_encoder(experiment.model, experiment.tokenizer)
    weights = fingerprint_of_model(experiment.model)
    data = read_data(experiment, loaded, seed)
    check_length_of_training(data.lines, training)
    config, homogeneity = resolve_config(
        loaded, experiment.asked, data.lines.parts["train"], pairs=data.pairs
    )

    base = name_of_base(experiment.model, loaded.name, folder) if training.lora else ""
    model = build_rationalizer(
        loaded.encoder, loaded.tokenizer, config, data.labels, seed, base=base
    )
    model.config.longest = training.longest
    if experiment.regression:
        model.config.label_mean, model.config.label_std = mean_and_std_of_labels(data.lines)
    adapter = with_adapter(model, training, seed, loaded.name) if training.lora else None
    model_on_device(model, experiment.device or getattr(experiment.model, "device", None))

    pad = pad_id(loaded.tokenizer)
    fitted = fit_rationalizer(
        model, data.lines, config, training, folder, seed=seed, name=loaded.name, pad=pad
    )
    report = report_of(
        experiment, model, loaded, data, config, homogeneity, fitted, seed=seed, weights=weights, pad=pad
    )  # fmt: skip
    with writing_trained_model(folder):
        write_model(model_on_device(model, "cpu"), adapter, loaded.tokenizer, training, folder)
        with write_training_file(folder / REPORT) as half:
            half.write_text(json.dumps(report.to_dict(), indent=1) + "\n", encoding="utf-8")
    for leftover in (CHECKPOINT, BEST):
        (folder / leftover).unlink(missing_ok=True)
    return report


def read_data(experiment: Experiment, loaded: LoadedEncoder, seed: int) -> TrainingData:
    """The texts of each part as the encoder reads them."""
    training, tokenizer = experiment.training, loaded.tokenizer
    parts, left_out = examples_by_part(
        experiment.data,
        data_dir=experiment.data_dir,
        limit=experiment.limit,
        held=training.held_out,
        seed=seed,
        skip_broken=experiment.skip_broken,
        regression=experiment.regression,
    )
    labels = () if experiment.regression else labels_of_parts(parts)
    special = special_ids(tokenizer)

    def read(pieces: Pieces) -> np.ndarray:
        return special_as_unknown(pieces.ids, pieces.start, special, tokenizer)

    longest = min(training.longest, max_tokens(loaded.encoder))
    lines = read_labelled_lines(parts, tokenizer, labels, longest, read)
    pairs = any(example.pair is not None for example in parts["train"])
    return TrainingData(lines=lines, labels=labels, left_out=left_out, pairs=pairs)


def check_length_of_training(lines: LabelledLines, training: RationalizerTraining) -> None:
    """Refuse fewer texts than a batch, and a warm-up that leaves no step."""
    texts = len(lines.parts["train"])
    if texts < training.batch:
        raise InputError(
            f"There are {texts} training texts, fewer than a batch of {training.batch}: give more texts, or a smaller "
            "batch."
        )
    steps = training.epochs * (texts // training.batch)
    if round(training.warm * steps / training.epochs) >= steps:
        raise InputError(
            f"After {training.warm:g} epochs of warm-up no step of {steps} is left: give more epochs."
        )


def name_of_base(model: Any, name: str, folder: Path) -> str:
    """How an adapter in `folder` names its model: a folder relative to its own, so that both can be moved together."""
    path = Path(model).expanduser()
    return os.path.relpath(path.resolve(), folder.resolve()) if path.is_dir() else name


def mean_and_std_of_labels(lines: LabelledLines) -> tuple[float, float]:
    """Mean and deviation of the numbers that a regression is to predict."""
    labels = np.array([line.label for line in lines.parts["train"]], float)
    if not labels.std() > 0:
        raise InputError(
            f"All training texts have the number {labels[0]:g}: a regression needs different ones."
        )
    return float(labels.mean()), float(labels.std())


def with_adapter(model: Rationalizer, training: RationalizerTraining, seed: int, name: str) -> Any:
    """peft's wrapper of the model, which has adapters in its blocks now; beside them only the heads learn."""
    if model.settings.encoder == "gru":
        raise InputError("A GRU is trained as a whole: leave lora away.")
    wrapped = wrap_with_lora(model, training.lora, seed=seed, name=name)
    model.selector.requires_grad_(True)
    model.classifier.requires_grad_(True)
    model.selector.offsets.requires_grad_(False)
    return wrapped


def report_of(
    experiment: Experiment,
    model: Rationalizer,
    loaded: LoadedEncoder,
    data: TrainingData,
    config: RationalizerConfig,
    homogeneity: Homogeneity | None,
    fitted: FitProgress,
    *,
    seed: int,
    weights: str,
    pad: int,
) -> RationalizerReport:
    """The report of a training that is done."""
    parts = data.lines.parts
    dev = evaluate_rationalizer(model, parts["dev"], pad)
    dev_every_token = evaluate_rationalizer(model, parts["dev"], pad, every_token=True)
    test = evaluate_rationalizer(model, parts["test"], pad) if "test" in parts else None
    every_token = dev_every_token
    if "test" in parts:
        every_token = evaluate_rationalizer(model, parts["test"], pad, every_token=True)
    return RationalizerReport(
        model=loaded.name,
        weights=weights,
        variant=experiment.variant,
        data=name_of_labelled_data(experiment.data),
        content=fingerprint_of_data_file(experiment.data),
        limit=experiment.limit,
        regression=experiment.regression,
        seed=seed,
        asked=experiment.asked,
        config=config,
        training=experiment.training,
        labels=data.labels,
        homogeneity=homogeneity,
        counts={**data.lines.counts, **data.left_out},
        dev=dev,
        test=test,
        every_token=every_token,
        troubles=troubles(dev, dev_every_token.from_rationale, commonest_share(data.lines)),
        epochs_run=len(fitted.history),
        history=tuple(fitted.history),
        cpu_minutes=round(fitted.seconds / 60, 2),
        command=experiment.command,
    )


def write_model(
    model: Rationalizer,
    adapter: Any,
    tokenizer: PreTrainedTokenizerBase,
    training: RationalizerTraining,
    folder: Path,
) -> None:
    """All weights; or an adapter with the heads, and the name of the model that it belongs to."""
    if adapter is None:
        with quiet_transformers():
            model.save_pretrained(folder)
    else:
        name = Path(model.config.base).name
        write_lora_adapter(
            adapter, folder, half=training.half, name=name, whole=("selector", "classifier")
        )
        with write_training_file(folder / "config.json") as half:
            half.write_text(model.config.to_json_string(), encoding="utf-8")
    with quiet_transformers():
        tokenizer.save_pretrained(folder)
