"""What a task is: how its texts become tokens, which targets there are, and what the outcomes say."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch

from raison.core.records import Encoding, Example, Target
from raison.models.loaded_model import LoadedModel
from raison.models.protocol import Prediction, TargetSpec
from raison.models.runner.answers import Columns
from raison.models.runner.batching import Chunk
from raison.models.runner.output_format import OutputFormat
from raison.models.runner.runner import Runner

__all__ = ["Task"]


class Task(OutputFormat):
    """The meaning of one model's texts and outcomes. It runs nothing itself: it asks the runner that it is given."""

    name: ClassVar[str]

    def __init__(self, loaded: LoadedModel):
        self.loaded = loaded

    def with_model(self, loaded: LoadedModel) -> Task:
        """The same task of another model."""
        other = copy.copy(self)
        other.loaded = loaded
        return other

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes, for models that have some."""
        names: dict[int, str] = self.loaded.setting("id2label")
        return tuple(str(names[number]) for number in sorted(names))

    @property
    def problem(self) -> str:
        """What a classifier decides: single_label | multi_label | regression."""
        return ""

    @property
    def probable(self) -> bool:
        """Outcomes have probabilities."""
        return True

    @abstractmethod
    def encode(self, example: Example, *, truncate: bool) -> Encoding:
        """The axis of one example."""

    @abstractmethod
    def predict(self, runner: Runner, encodings: Sequence[Encoding]) -> list[Prediction]:
        """What the model says about each whole text."""

    @abstractmethod
    def resolve_targets(
        self, runner: Runner, encoding: Encoding, target_spec: TargetSpec
    ) -> list[tuple[Encoding, Target]]:
        """The targets that are asked for, each with the encoding it belongs to."""

    def predicted_target(
        self, runner: Runner, encoding: Encoding, target_spec: TargetSpec
    ) -> Target:
        """What the model predicts, asked only if it has not been."""
        prediction = target_spec.prediction or self.predict(runner, [encoding])[0]
        return prediction.target

    # -- where outcomes stand ---------------------------------------------------------------------------

    def columns_of_targets(self, logits: torch.Tensor, chunk: Chunk) -> Columns:
        """The outcomes [b m v] of each of the chunk's targets, with its own and its contrast's number."""
        ids = torch.from_numpy(chunk.target_ids()).to(logits.device)
        contrasts = chunk.contrast_ids()
        if contrasts is None:
            return Columns(logits, ids)
        return Columns(logits, ids, torch.from_numpy(contrasts).to(logits.device))

    def columns_at_rows(self, logits: torch.Tensor, chunk: Chunk) -> Columns:
        """The same of targets that are read at rows of the text: tokens of a vocabulary, or tags, of logits [b t v]."""
        if not chunk.picked:
            rows = torch.from_numpy(chunk.target_columns()).to(logits.device)
            logits = logits.gather(1, rows[..., None].expand(-1, -1, logits.shape[-1]))
        return self.columns_of_targets(logits, chunk)
