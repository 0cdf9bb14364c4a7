"""The report of an attention classifier's training (training.json) and its scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from raison.attention_models.config import ClassifierConfig, ClassifierTraining
from raison.core.json_record import Record, record_field

__all__ = ["ClassifierReport", "ClassifierScores"]


@dataclass(frozen=True, eq=False)
class ClassifierScores(Record):
    """How well the labels of a part of the data are predicted."""

    loss: float
    accuracy: float
    f1: float


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassifierReport(Record):
    """One training: what was asked for, what it was made of, and how well it went."""

    what: str  # classifier
    data: str
    seed: int
    asked: Mapping[str, object]  # what makes the experiment what it is, beside its seed
    config: ClassifierConfig = record_field("ClassifierConfig")
    training: ClassifierTraining = record_field("ClassifierTraining")
    embeddings: str  # where word vectors come from: no path of this machine
    words_with_vector: int | None  # of a file of vectors
    frozen_embeddings: bool
    labels: tuple[str, ...]
    counts: Mapping[str, int]  # texts of each part, what was left out or cut, words, parameters
    dev: ClassifierScores = record_field("ClassifierScores")
    test: ClassifierScores | None = record_field("ClassifierScores")
    epochs_run: int
    # the step and the scores of the development part, epoch by epoch
    history: tuple[Mapping[str, object], ...]
    cpu_minutes: float
    command: str = ""
