"""Text and pair classification: one class, several labels, or a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.records import Encoding, Example, Target
from raison.core.registry import suggest_name
from raison.core.spec import index_in_spec
from raison.models.protocol import Prediction, TargetSpec, whole_number
from raison.models.runner.answers import Columns
from raison.models.runner.batching import Chunk
from raison.models.runner.output_format import Output
from raison.models.runner.runner import Runner
from raison.models.tasks.base import Task, axis_of, columns_of_targets, outcomes_of_texts

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["ClassificationTask"]

NO_PADDING = -100  # no token has this id
BEST = 5  # classes that a prediction shows
SHOWN = 20  # classes that an error message lists


class ClassificationTask(Task):
    """A sequence classifier: the target is a label, its value the logit."""

    name = "classification"

    @property
    def paddings(self) -> tuple[str, ...]:
        """Many heads read row 0, which left padding would take; a decoder finds its last row by the padding id."""
        blind = self.is_decoder and self.loaded.setting("pad_token_id") is None
        return ("exact",) if blind else ("exact", "right")

    @property
    def problem(self) -> str:
        """single_label, multi_label or regression."""
        kind = self.loaded.hf.config.problem_type or ""
        if kind.startswith("multi_label"):
            return "multi_label"
        if kind == "regression" or self.loaded.hf.config.num_labels == 1:
            return "regression"
        return "single_label"

    @property
    def probable(self) -> bool:
        return self.problem != "regression"

    @property
    def is_decoder(self) -> bool:
        """A decoder with a classification head, which reads its last row."""
        hf = self.loaded.hf
        return "CausalLM" not in type(hf).__name__ and hasattr(hf, "score")

    def prepare_view(self, view: PreTrainedModel) -> None:
        if getattr(view.config, "pad_token_id", None) is None:
            view.config.pad_token_id = NO_PADDING  # so a decoder reads its very last row

    # -- texts and targets ------------------------------------------------------------------------------

    def encode(self, example: Example, *, truncate: bool) -> Encoding:
        names = ("text",) if example.pair is None else ("first", "second")
        encoding = axis_of(self.loaded, example, names, truncate=truncate)
        if not self.is_decoder:
            return encoding

        padding = self.loaded.setting("pad_token_id")
        real = np.flatnonzero(encoding.ids != padding)
        last = real[-1] if len(real) else -1  # that is not padding: the row it is read from
        fixed = encoding.fixed.copy()
        fixed[last] = True
        return replace(encoding, fixed=fixed)

    def label_id(self, wanted: object) -> int:
        """The number of a class that is named by its label or its number."""
        labels = self.labels
        number = None if isinstance(wanted, bool) else whole_number(wanted)
        if number is not None:
            if 0 <= number < len(labels):
                return number
            last = len(labels) - 1
            raise InputError(
                f"Class {wanted} does not exist: {self.loaded.name} has classes 0 to {last}."
            )

        name = str(wanted)
        found = numbers_of_label(name, labels)
        if not found:
            place = index_in_spec(name, len(labels))  # the command line has texts only
            if place is not None:
                return place
            shown = ", ".join(labels[:SHOWN])
            if len(labels) > SHOWN:
                shown += " …"
            raise InputError(
                f"{self.loaded.name} has no class {name!r}.{suggest_name(name, list(labels))} "
                f"Its classes are: {shown}."
            )
        if len(found) > 1:
            numbers = " or ".join(map(str, found))
            raise InputError(
                f"{self.loaded.name} has several classes called {name!r}: name one by number, {numbers}."
            )
        return found[0]

    def target_of(
        self, label: int, contrast: int | None = None, output: str | None = None
    ) -> Target:
        """A class as a target, as its logit unless an output is named."""
        labels = self.labels
        target = Target(kind="label", ids=(label,), text=labels[label], output=output or "logit")
        if contrast is None:
            return target
        return replace(target, contrast=(contrast,), contrast_text=labels[contrast])

    def resolve_targets(
        self, runner: Runner, encoding: Encoding, target_spec: TargetSpec
    ) -> list[tuple[Encoding, Target]]:
        rival = None if target_spec.contrast is None else self.label_id(target_spec.contrast)
        if rival is not None and self.problem != "single_label":
            raise InputError("A contrast needs a model that chooses one class among several.")
        if self.problem == "regression" and target_spec.output not in (None, "logit"):
            raise InputError("A regression has no probabilities: leave the output away.")

        if target_spec.target == "all":
            chosen = [label for label in range(len(self.labels)) if label != rival]
        elif target_spec.target is None:
            chosen = [self.predicted_target(runner, encoding, target_spec).ids[0]]
        else:
            chosen = [self.label_id(target_spec.target)]
        if chosen == [rival]:
            raise InputError(
                f"The target and the contrast are both {self.labels[chosen[0]]!r}: name two classes."
            )
        return [(encoding, self.target_of(label, rival, target_spec.output)) for label in chosen]

    # -- outcomes ---------------------------------------------------------------------------------------

    def predict(self, runner: Runner, encodings: Sequence[Encoding]) -> list[Prediction]:
        return [self.prediction_from(logits[0]) for logits in outcomes_of_texts(runner, encodings)]

    def prediction_from(self, logits: torch.Tensor) -> Prediction:
        """The best class by its logits [v]."""
        if self.problem == "regression":
            values = logits
        elif self.problem == "multi_label":
            values = logits.sigmoid()
        else:
            values = logits.softmax(-1)
        labels = self.labels
        best = int(values.argmax())
        order = values.argsort(descending=True)[:BEST].tolist()
        top = [(labels[label], float(values[label])) for label in order]
        return Prediction(
            target=self.target_of(best),
            value=float(values[best]),
            top=tuple(top),
            outcomes=tuple((label,) for label in order),
            probable=self.probable,
            exclusive=self.problem == "single_label",
        )

    def columns(self, output: Output, chunk: Chunk) -> Columns:
        logits: torch.Tensor = output.logits  # [b v]
        asked = chunk.asked
        if asked is None:
            return Columns(logits[:, None, :], torch.zeros(len(logits), 1, dtype=torch.long))

        if self.problem == "single_label":
            return columns_of_targets(logits[:, None, :], asked)
        ids = torch.from_numpy(asked.ids).to(logits.device)
        if self.problem == "multi_label":
            # each label is a choice of its own: no (logit 0) or yes (its logit)
            yes = logits.gather(1, ids)
            return Columns(torch.stack([torch.zeros_like(yes), yes], -1), torch.ones_like(ids))
        return Columns(logits.gather(1, ids)[..., None], torch.zeros_like(ids))


def numbers_of_label(name: str, labels: Sequence[str]) -> list[int]:
    """The numbers of the classes of this name; where there are none, of those that differ in their case only."""
    exact = [number for number, label in enumerate(labels) if label == name]
    if exact:
        return exact
    return [number for number, label in enumerate(labels) if label.lower() == name.lower()]
