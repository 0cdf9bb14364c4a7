"""Trains a rationalizer from labels, one seed or several: reads the data, fits, scores and writes the folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import InputError
from raison.core.json_record import JsonObject, to_json_value
from raison.core.parameters import check_choice, check_integer
from raison.core.records import Example
from raison.models.catalog.quiet_loading import quiet_transformers
from raison.models.codec import Pieces
from raison.models.load import model_on_device
from raison.models.weight_fingerprint import fingerprint_of_model
from raison.rationalizers.batching import padding_id, special_as_unknown, special_ids
from raison.rationalizers.build import (
    build_rationalizer,
    max_tokens_of_encoder,
    resolve_rationalizer_config,
    with_derived_settings,
)
from raison.rationalizers.config import VARIANTS, RationalizerConfig, RationalizerTraining
from raison.rationalizers.encoders import LoadedEncoder, load_encoder, name_of_model_in_memory
from raison.rationalizers.evaluate import commonest_share, evaluate_rationalizer
from raison.rationalizers.module import Rationalizer
from raison.rationalizers.report import RationalizerReport, RationalizerScores, troubles
from raison.rationalizers.training_loop import fit_rationalizer
from raison.training.data_names import fingerprint_of_data_file, name_of_labelled_data
from raison.training.fit_settings import SEEDS
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

if TYPE_CHECKING:
    from peft import PeftModel

__all__ = ["train_rationalizer"]

MANY_BLOCKS = 1000  # where the number is not known yet, and everything else can be checked


@dataclass(frozen=True)
class RationalizerExperiment:
    """What the training of a rationalizer needs to know, whatever its seed and folder."""

    model: str | os.PathLike[str] | PreTrainedModel
    tokenizer: PreTrainedTokenizerBase | None
    data: str | Path | Sequence[Example]
    asked: Mapping[str, object]  # settings of the config
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
    def device_of_model(self) -> torch.device | None:
        """Where a model in memory is."""
        device: torch.device | None = getattr(self.model, "device", None)
        return device

    @property
    def model_name(self) -> str:
        """As `load_encoder` calls it."""
        if isinstance(self.model, (str, os.PathLike)):
            path = Path(self.model).expanduser()
            if path.is_dir():
                return path.name
            return str(self.model)
        return name_of_model_in_memory(self.model)

    def made_report(self, report: Mapping[str, object]) -> bool:
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
class RationalizerData:
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
    config: Mapping[str, object] | None = None,
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
    trial = {**asked, "blocks": asked.get("blocks") or MANY_BLOCKS}
    RationalizerConfig.from_settings(with_derived_settings(trial))
    model_on_device(torch.empty(0), device)
    experiment = RationalizerExperiment(
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
        return train_one_rationalizer(experiment, Path(out), seed)

    def train_one(folder: Path, seed: int) -> JsonObject:
        return train_one_rationalizer(experiment, folder, seed).to_dict()

    summary = train_with_seeds(train_one, Path(out), runs, seed, experiment.made_report)
    return RepeatedTraining.from_dict(summary)


def train_one_rationalizer(
    experiment: RationalizerExperiment, folder: Path, seed: int
) -> RationalizerReport:
    """One run: a folder with weights, config, tokenizer and training.json."""
    prepare_training_folder(folder, REPORT)
    training = experiment.training
    if training.lora and experiment.in_memory:
        raise InputError(
            "An adapter names its model, and one in memory has no name: save it first, or leave lora away."
        )
    loaded = load_encoder(experiment.model, experiment.tokenizer)
    weights = fingerprint_of_model(experiment.model)
    data = read_rationalizer_data(experiment, loaded, seed)
    check_length_of_training(data.lines, training)
    config, homogeneity = resolve_rationalizer_config(
        loaded, experiment.asked, data.lines.parts["train"], pairs=data.pairs
    )

    model = build_rationalizer(loaded.encoder, loaded.tokenizer, config, data.labels, seed)
    model.config.longest = training.longest
    if experiment.regression:
        model.config.label_mean, model.config.label_std = mean_and_std_of_labels(data.lines)
    adapter = None
    if training.lora:
        model.config.base = base_name_for_rationalizer(str(experiment.model), loaded.name, folder)
        adapter = add_rationalizer_adapter(model, training, seed, loaded.name)
    model_on_device(model, experiment.device or experiment.device_of_model)

    pad = padding_id(loaded.tokenizer)
    fitted = fit_rationalizer(
        model, data.lines, config, training, folder, seed=seed, name=loaded.name, pad=pad
    )
    scores = scores_of_parts(model, data.lines, pad)
    report = RationalizerReport(
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
        training=training,
        labels=data.labels,
        homogeneity=homogeneity,
        counts={**data.lines.counts, **data.left_out},
        dev=scores.dev,
        test=scores.test,
        every_token=scores.every_token,
        troubles=scores.troubles,
        epochs_run=len(fitted.history),
        history=tuple(fitted.history),
        cpu_minutes=round(fitted.seconds / 60, 2),
        command=experiment.command,
    )
    write_rationalizer(model, adapter, loaded.tokenizer, report, folder)
    return report


def read_rationalizer_data(
    experiment: RationalizerExperiment, loaded: LoadedEncoder, seed: int
) -> RationalizerData:
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
    labels: tuple[str, ...] = ()
    if not experiment.regression:
        labels = labels_of_parts(parts)
    special = special_ids(tokenizer)

    def read(pieces: Pieces) -> np.ndarray:
        return special_as_unknown(pieces.ids, pieces.start, special, tokenizer)

    longest = min(training.longest, max_tokens_of_encoder(loaded.encoder))
    lines = read_labelled_lines(parts, tokenizer, labels, longest, read)
    pairs = any(example.pair is not None for example in parts["train"])
    return RationalizerData(lines=lines, labels=labels, left_out=left_out, pairs=pairs)


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


def base_name_for_rationalizer(model: str, name: str, folder: Path) -> str:
    """How an adapter in `folder` names its model: a folder relative to its own, so that both can be moved together."""
    path = Path(model).expanduser()
    if path.is_dir():
        return os.path.relpath(path.resolve(), folder.resolve())
    return name


def mean_and_std_of_labels(lines: LabelledLines) -> tuple[float, float]:
    """Mean and deviation of the numbers that a regression is to predict."""
    labels = np.array([line.label for line in lines.parts["train"]], float)
    if not labels.std() > 0:
        raise InputError(
            f"All training texts have the number {labels[0]:g}: a regression needs different ones."
        )
    return float(labels.mean()), float(labels.std())


def add_rationalizer_adapter(
    model: Rationalizer, training: RationalizerTraining, seed: int, name: str
) -> PeftModel:
    """peft's wrapper of the model, which has adapters in its blocks now; beside them only the heads learn."""
    if model.settings.encoder == "gru":
        raise InputError("A GRU is trained as a whole: leave lora away.")
    wrapped = wrap_with_lora(model, training.lora, seed=seed, name=name)
    model.selector.requires_grad_(True)
    model.classifier.requires_grad_(True)
    model.selector.offsets.requires_grad_(False)
    return wrapped


@dataclass(frozen=True)
class ScoresOfParts:
    """How well a trained rationalizer does on the parts that it was not trained on."""

    dev: RationalizerScores
    test: RationalizerScores | None
    every_token: RationalizerScores  # of the last part, where the predictor reads all tokens
    troubles: tuple[str, ...]


def scores_of_parts(model: Rationalizer, lines: LabelledLines, pad: int) -> ScoresOfParts:
    """The scores of the development and (where there is one) the test part, and what goes wrong."""
    parts = lines.parts
    dev = evaluate_rationalizer(model, parts["dev"], pad)
    dev_every_token = evaluate_rationalizer(model, parts["dev"], pad, every_token=True)
    test, every_token = None, dev_every_token
    if "test" in parts:
        test = evaluate_rationalizer(model, parts["test"], pad)
        every_token = evaluate_rationalizer(model, parts["test"], pad, every_token=True)
    return ScoresOfParts(
        dev=dev,
        test=test,
        every_token=every_token,
        troubles=troubles(dev, dev_every_token.from_rationale, commonest_share(lines)),
    )


def write_rationalizer(
    model: Rationalizer,
    adapter: PeftModel | None,
    tokenizer: PreTrainedTokenizerBase,
    report: RationalizerReport,
    folder: Path,
) -> None:
    """Write all weights, or an adapter with the heads and the name of its base; the report comes last."""
    with writing_trained_model(folder):
        model_on_device(model, "cpu")
        if adapter is None:
            with quiet_transformers():
                model.save_pretrained(folder)
        else:
            write_rationalizer_adapter(model, adapter, folder, half=report.training.half)
        with quiet_transformers():
            tokenizer.save_pretrained(folder)
        with write_training_file(folder / REPORT) as half:
            half.write_text(json.dumps(report.to_dict(), indent=1) + "\n", encoding="utf-8")
    for leftover in (CHECKPOINT, BEST):
        (folder / leftover).unlink(missing_ok=True)


def write_rationalizer_adapter(
    model: Rationalizer, adapter: PeftModel, folder: Path, *, half: bool
) -> None:
    """Write an adapter with the heads, and the config that names its base."""
    base = Path(model.config.base).name
    write_lora_adapter(adapter, folder, half=half, name=base, whole=("selector", "classifier"))
    with write_training_file(folder / "config.json") as place:
        place.write_text(model.config.to_json_string(), encoding="utf-8")
