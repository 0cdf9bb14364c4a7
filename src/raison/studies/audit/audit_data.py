"""The labelled texts of an audit, and the training texts that adversaries learn from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raison.core import limits
from raison.core.errors import InputError, Unsupported
from raison.core.records import Example
from raison.core.registry import datasets
from raison.datasets.base import DEVELOPMENT
from raison.datasets.open import open_dataset, parse_data_spec
from raison.models.protocol import InspectableModel
from raison.models.tasks.classification import ClassificationTask
from raison.training.data_names import fingerprint_of_data_file
from raison.training.multi_seed import REPORT

__all__ = ["DataSource", "LabelledTexts", "Texts", "audited_model_was_trained_on"]

Texts = str | os.PathLike[str] | Sequence[Example]  # a data set, a file, or examples


@dataclass(frozen=True)
class LabelledTexts:
    """Examples with a label each, and how many records were broken."""

    examples: list[Example]
    broken: int = 0


@dataclass(frozen=True)
class DataSource:
    """Where the texts of an audit are read from, and how."""

    texts: str | Sequence[Example]  # a data set, a file, or examples
    split: str | None = None
    limit: int | None = None
    folder: Any = None  # of the data sets
    skip_broken: bool = False

    def read(self, model: InspectableModel) -> LabelledTexts:
        """The texts to audit on, with their labels as the model writes them."""
        broken = 0
        if isinstance(self.texts, str):
            loaded = open_dataset(
                self.texts,
                self.split or self.default_split(),
                self.limit,
                self.folder,
                self.skip_broken,
            )
            examples = loaded.examples
            broken = len(loaded.broken)
        else:
            examples = list(self.texts)[: self.limit]

        if not examples:
            raise InputError("There are no texts to audit the model on.")
        if missing := sum(example.label is None for example in examples):
            raise InputError(
                f"{missing} texts have no label, which an audit needs: name their column, as in (label=stars)."
            )
        return LabelledTexts(audit_examples_with_label_names(model, examples), broken)

    def default_split(self) -> str | None:
        """The part that is audited where the user names none: one that the model has not learned from."""
        name = name_of_audited_dataset(self.texts)
        if name not in datasets:
            return None
        held_out = []
        for split in ("test", *DEVELOPMENT):
            if split in datasets[name].splits:
                held_out.append(split)
        if held_out:
            return held_out[0]
        return None

    def read_train(self, model: InspectableModel, train: Texts | None) -> list[Example]:
        """What adversaries learn from: the texts that are given for it, or the train part of the data set."""
        if train is not None and not isinstance(train, (str, os.PathLike)):
            examples = list(train)
        else:
            source = self.texts if train is None else os.fspath(train)
            name = name_of_audited_dataset(source)
            has_train_part = name in datasets and "train" in datasets[name].splits
            if train is None and not has_train_part:
                raise InputError(
                    "Adversaries learn from texts that the model was trained on: name a data set with a train part, or "
                    "give them (--train)."
                )
            split = "train" if has_train_part else None
            examples = open_dataset(
                str(source), split, None, self.folder, self.skip_broken
            ).examples

        if not examples or any(example.label is None for example in examples):
            raise InputError(
                "Adversaries learn from labelled texts, and there are none, or some without a label."
            )
        return audit_examples_with_label_names(model, examples)


def name_of_audited_dataset(texts: str | Sequence[Example]) -> str:
    """The name of a data set or a file; examples in memory have none."""
    if isinstance(texts, str):
        return parse_data_spec(texts)[0]
    return ""


def audit_examples_with_label_names(
    model: InspectableModel, examples: Sequence[Example]
) -> list[Example]:
    """The examples with their labels as the model writes them (positive, POSITIVE)."""
    task = model.runner.task
    if not isinstance(task, ClassificationTask):
        raise Unsupported(f"{model.name} is not a text classifier: an audit is about classifiers.")
    given = dict.fromkeys(str(example.label) for example in examples)
    names = {label: model.labels[task.label_id(label)] for label in given}
    renamed = []
    for example in examples:
        name = names[str(example.label)]
        renamed.append(replace(example, label=name))
    return renamed


def audited_model_was_trained_on(model: InspectableModel, data: str | Sequence[Example]) -> bool:
    """Whether the model was trained on this very file."""
    folder = str(getattr(model.hf, "name_or_path", ""))
    report = Path(folder) / REPORT
    content = fingerprint_of_data_file(data)
    try:
        training = limits.read_json_text(report.read_text(encoding="utf-8"))
        return bool(content) and training["asked"]["content"] == content
    except (OSError, ValueError, KeyError, TypeError):
        return False
