"""Trains an attention classifier from labels, with early stopping, one seed or several.

loss = −log p(label) + δ · tying + η · mlm        (regularizers.py)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch.nn import functional
from transformers import PreTrainedTokenizerBase

from raison.attention_models.build import WordVectors, new_classifier, word_vectors
from raison.attention_models.config import ClassifierConfig, ClassifierTraining
from raison.attention_models.evaluate import evaluate_classifier
from raison.attention_models.module import AttentionClassifier
from raison.attention_models.normalizers import normalizer_of
from raison.attention_models.regularizers import mlm_loss, tying_loss
from raison.attention_models.report import ClassifierReport
from raison.attention_models.vocabulary import words_tokenizer
from raison.core.errors import InputError
from raison.core.json_record import JsonObject
from raison.core.records import Example
from raison.models.catalog.quiet_loading import quiet_transformers
from raison.models.load import model_on_device
from raison.training.data_names import fingerprint_of_data_file, name_of_labelled_data
from raison.training.early_stopping import BestEpochKeeper
from raison.training.feed import BatchFeed
from raison.training.fit import fit
from raison.training.fit_settings import FitProgress, FitSettings, Measurements
from raison.training.labelled_lines import (
    LabelledLine,
    LabelledLines,
    padded_lines,
    read_labelled_lines,
)
from raison.training.labelled_parts import examples_by_part, labels_of_parts
from raison.training.multi_seed import REPORT, RepeatedTraining, train_with_seeds
from raison.training.seeds import seeded_generator
from raison.training.training_folder import (
    BEST,
    CHECKPOINT,
    prepare_training_folder,
    write_training_file,
    writing_trained_model,
)

__all__ = ["train_classifier"]

VECTORS, CORRUPTED_WORDS = 7, 15  # what randomness is for, so that no two draws are the same


@dataclass(frozen=True)
class ClassifierExperiment:
    """What the training of a classifier needs to know, whatever its seed and folder."""

    data: str | Path | Sequence[Example]
    config: ClassifierConfig
    training: ClassifierTraining
    width: int | None  # that was asked for: vectors of a file must have it
    data_dir: str | Path | None
    limit: int | None
    skip_broken: bool
    device: str | None
    command: str

    def asked(self) -> JsonObject:
        """What makes an experiment what it is, beside its seed."""
        return {
            "config": self.config.to_dict(),
            "training": self.training.to_dict(),
            "limit": self.limit,
            "content": fingerprint_of_data_file(self.data),
        }

    def made_report(self, report: Mapping[str, object]) -> bool:
        """Whether a report is of this experiment."""
        return bool(
            report["data"] == name_of_labelled_data(self.data) and report["asked"] == self.asked()
        )


def train_classifier(
    data: str | Path | Sequence[Example],
    *,
    out: str | Path,
    config: ClassifierConfig | Mapping[str, object] | None = None,
    training: ClassifierTraining | Mapping[str, object] | None = None,
    seed: int = 0,
    runs: int = 1,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    skip_broken: bool = False,
    device: str | None = None,
    command: str = "",
) -> ClassifierReport | RepeatedTraining:
    """Train an attention classifier on a labelled data set, and write it to the folder `out`.

    `data` is a data set with a train part, a file, or a list of labelled Examples. The width follows from the word
    vectors where they are read. With several `runs` there is a folder run-0, run-1, … for each seed, and runs.json
    tells mean and deviation. The same call goes on where a run was stopped, on any `device`. Returns what training.json
    (of several runs: runs.json) holds.
    """
    if not isinstance(training, ClassifierTraining):
        training = ClassifierTraining.from_settings(training or {})
    if isinstance(config, ClassifierConfig):
        width: int | None = config.width
    else:
        settings = dict(config or {})
        config = ClassifierConfig.from_settings(
            training_config_with_provisional_width(settings, training)
        )
        width = config.width if "width" in settings else None
    normalizer_of(config.normalizer)  # a name or a parameter that is wrong is said at once
    model_on_device(torch.empty(0), device)  # and so is a device that is not there
    experiment = ClassifierExperiment(
        data=data if isinstance(data, (str, Path)) else list(data),
        config=config,
        training=training,
        width=width,
        data_dir=data_dir,
        limit=limit,
        skip_broken=skip_broken,
        device=device,
        command=command,
    )

    def train_one(folder: Path, seed: int) -> JsonObject:
        return train_one_classifier(experiment, folder, seed).to_dict()

    report = train_with_seeds(train_one, Path(out), runs, seed, experiment.made_report)
    if runs == 1:
        return ClassifierReport.from_dict(report)
    return RepeatedTraining.from_dict(report)


def training_config_with_provisional_width(
    config: Mapping[str, object], training: ClassifierTraining
) -> dict[str, object]:
    """A width that fits, where that of the vectors is not known yet."""
    heads = config.get("heads", 1)
    known = "width" in config or training.embeddings == "random"
    if known or not isinstance(heads, int) or heads < 1:
        return dict(config)
    return {**config, "width": 2 * heads}


def train_one_classifier(
    experiment: ClassifierExperiment, folder: Path, seed: int
) -> ClassifierReport:
    """One run: a folder with weights, config, vocabulary and training.json."""
    prepare_training_folder(folder, REPORT)
    training = experiment.training
    asked = experiment.asked()
    parts, left_out = examples_by_part(
        experiment.data,
        data_dir=experiment.data_dir,
        limit=experiment.limit,
        held=training.held_out,
        seed=seed,
        skip_broken=experiment.skip_broken,
    )
    labels = labels_of_parts(parts)
    tokenizer = words_tokenizer(training_texts_with_pairs(parts["train"]), least=training.least)

    vectors = word_vectors(
        training.embeddings, experiment.config.width, tokenizer, seeded_generator(seed, VECTORS)
    )
    config = training_config_for_vectors(experiment, vectors)
    lines = read_labelled_lines(parts, tokenizer, labels, config.longest)
    if len(lines.parts["train"]) < training.batch:
        raise InputError(
            f"There are {len(lines.parts['train'])} training texts, fewer than a batch of {training.batch}: give more "
            "texts, or a smaller batch."
        )
    model = new_classifier(config, tokenizer, labels, vectors.vectors, seed)
    model_on_device(model, experiment.device)
    model.words.requires_grad_(not training.freezes_embeddings)
    fitted = fit_attention_classifier(model, lines, config, training, folder, seed)

    test = None
    if "test" in lines.parts:
        test = evaluate_classifier(model, lines.parts["test"])
    parameters = sum(parameter.numel() for parameter in model.parameters())
    report = ClassifierReport(
        what="classifier",
        data=name_of_labelled_data(experiment.data),
        seed=seed,
        asked=asked,
        config=config,
        training=training,
        embeddings=vectors.origin,
        words_with_vector=vectors.known,
        frozen_embeddings=training.freezes_embeddings,
        labels=labels,
        counts={**lines.counts, **left_out, "words": len(tokenizer), "parameters": parameters},
        dev=evaluate_classifier(model, lines.parts["dev"]),
        test=test,
        epochs_run=len(fitted.history),
        history=tuple(fitted.history),
        cpu_minutes=round(fitted.seconds / 60, 2),
        command=experiment.command,
    )
    write_attention_classifier(folder, model, tokenizer, report)
    return report


def training_config_for_vectors(
    experiment: ClassifierExperiment, vectors: WordVectors
) -> ClassifierConfig:
    """The config with the width of the word vectors, and the length that the training asks for."""
    training, size = experiment.training, vectors.vectors.shape[1]
    if experiment.width is not None and size != experiment.width:
        raise InputError(
            f"{training.embeddings} has vectors of {size} numbers, and the model wants {experiment.width}: leave the "
            f"width away, or set it to {size}."
        )
    config = replace(experiment.config, width=size)
    if training.longest is not None:
        config = replace(config, longest=training.longest)
    return config


def training_texts_with_pairs(examples: Sequence[Example]) -> list[str]:
    """Every text, and the second one of every pair behind its first."""
    texts = []
    for example in examples:
        texts.append(example.text)
        if example.pair is not None:
            texts.append(example.pair)
    return texts


def write_attention_classifier(
    folder: Path,
    model: AttentionClassifier,
    tokenizer: PreTrainedTokenizerBase,
    report: ClassifierReport,
) -> None:
    """Write weights, config and vocabulary, then the report; checkpoints are not needed any more."""
    with writing_trained_model(folder):
        with quiet_transformers():
            model_on_device(model, "cpu").save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        with write_training_file(folder / REPORT) as half:
            half.write_text(json.dumps(report.to_dict(), indent=1) + "\n", encoding="utf-8")
    for name in (CHECKPOINT, BEST):
        (folder / name).unlink(missing_ok=True)


def fit_attention_classifier(
    model: AttentionClassifier,
    lines: LabelledLines,
    config: ClassifierConfig,
    training: ClassifierTraining,
    folder: Path,
    seed: int,
) -> FitProgress:
    """Train to the epoch with the best F1 of the development part; its weights are the model's in the end."""
    epoch = len(lines.parts["train"]) // training.batch  # steps
    settings = {**config.to_dict(), **training.to_dict(), "data": lines.content(), "seed": seed}
    best = BestEpochKeeper(folder, settings, "f1", training.patience)

    def look() -> Measurements:
        return evaluate_classifier(model, lines.parts["dev"]).to_dict()

    def loss(_: torch.nn.Module, batch: Sequence[LabelledLine], part: int) -> torch.Tensor:
        return attention_classifier_loss(
            model, batch, training, seeded_generator(seed, part, CORRUPTED_WORDS)
        )

    attention = {id(parameter) for parameter in model.scorer.parameters()}
    moving = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in moving if id(p) not in attention], "peak": training.lr},
        {
            "params": [p for p in moving if id(p) in attention],
            "peak": training.lr * training.attention_lr,
        },
    ]
    fit_settings = FitSettings(
        out=folder,
        steps=training.epochs * epoch,
        settings=settings,
        seed=seed,
        schedule="constant",
        warm=0.0,
        clip=training.clip,
        decay=training.weight_decay,
        every=epoch,
    )
    feed = BatchFeed(lines.parts["train"], training.batch, seed)
    fitted = fit(
        model, groups, feed, loss, fit_settings, best.look_and_keep(model, look), best.should_stop
    )
    best.restore(model)
    return fitted


def attention_classifier_loss(
    model: AttentionClassifier,
    lines: Sequence[LabelledLine],
    training: ClassifierTraining,
    random: torch.Generator,
) -> torch.Tensor:
    """The loss of a batch: cross entropy, and what keeps states near their words."""
    ids, present, labels = padded_lines(lines, device=model.device)
    output = model(ids, attention_mask=present)
    loss = functional.cross_entropy(output.logits, labels)
    if training.tying:
        loss = loss + training.tying * tying_loss(output)
    if training.mlm:
        loss = loss + training.mlm * mlm_loss(model, ids, present, training.mlm_share, random)
    return loss
