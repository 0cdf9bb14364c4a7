"""Text and pair classification: one class, several labels, or a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.records import Encoding, Example, Target
from raison.core.registry import suggest
from raison.core.spec import place_of
from raison.models.axis import axis_of
from raison.models.protocol import PREDICTED, Prediction, TargetSpec
from raison.models.runner.adapter import Adapter
from raison.models.runner.answers import Columns
from raison.models.runner.batching import Chunk

__all__ = ["Classifier"]


class Classifier(Adapter):
    """A sequence classifier: the target is a label, its value the logit."""

    task = "classification"

    @property
    def paddings(self) -> tuple[str, ...]:  # type: ignore[override]
        """Many heads read row 0, which left padding would take; a decoder finds its last row by the padding id."""
        blind = self.causal and getattr(self.hf.config, "pad_token_id", None) is None
        return ("exact",) if blind else ("exact", "right")

    @property
    def problem(self) -> str:  # type: ignore[override]
        """single_label, multi_label or regression."""
        kind = getattr(self.hf.config, "problem_type", None) or ""
        if kind.startswith("multi_label"):
            return "multi_label"
        return "regression" if kind == "regression" or self.hf.config.num_labels == 1 else "single_label"

    @property
    def probable(self) -> bool:
        return self.problem != "regression"

    def prepare(self, view: Any) -> Any:
        if getattr(view.config, "pad_token_id", None) is None:
            view.config.pad_token_id = -100  # no token is padding, so a decoder reads its very last row
        return view

    def encode_one(self, example: Example, *, truncate: bool) -> Encoding:
        names = ("text",) if example.pair is None else ("first", "second")
        encoding = axis_of(self, example, names, truncate=truncate)
        if not self.causal:
            return encoding
        fixed = encoding.fixed.copy()
        real = np.flatnonzero(encoding.ids != getattr(self.hf.config, "pad_token_id", None))
        fixed[real[-1] if len(real) else -1] = True  # the row it is read from: the last that is not padding
        return replace(encoding, fixed=fixed)

    @property
    def causal(self) -> bool:
        """A decoder with a classification head, which reads its last row."""
        return "CausalLM" not in type(self.hf).__name__ and hasattr(self.hf, "score")

    def label_id(self, target_spec: Any) -> int:
        labels = self.labels
        if isinstance(target_spec, (int, np.integer)) and not isinstance(target_spec, bool):
            if 0 <= target_spec < len(labels):
                return int(target_spec)
            raise InputError(f"Class {target_spec} does not exist: {self.name} has classes 0 to {len(labels) - 1}.")
        exact = [number for number, label in enumerate(labels) if label == str(target_spec)]
        folded = [number for number, label in enumerate(labels) if label.lower() == str(target_spec).lower()]
        found = exact or folded
        if not found and (place := place_of(str(target_spec), len(labels))) is not None:
            return place  # the command line has texts only
        if len(found) > 1:
            numbers = " or ".join(map(str, found))
            raise InputError(
                f"{self.name} has several classes called {str(target_spec)!r}: name one by number, {numbers}."
            )
        if not found:
            raise InputError(
                f"{self.name} has no class {str(target_spec)!r}.{suggest(str(target_spec), list(labels))} "
                f"Its classes are: {', '.join(labels[:20])}{' …' if len(labels) > 20 else ''}."
            )
        return found[0]

    def target_of(self, label: int, contrast: int | None, output: str | None) -> Target:
        rival = None if contrast is None else (contrast,)
        name = "" if contrast is None else self.labels[contrast]
        return Target(
            "label", (label,), text=self.labels[label], output=output or "logit", contrast=rival, contrast_text=name
        )

    def resolve_targets(self, encoding: Encoding, target_spec: TargetSpec = PREDICTED) -> list[tuple[Encoding, Target]]:
        rival = None if target_spec.contrast is None else self.label_id(target_spec.contrast)
        if rival is not None and self.problem != "single_label":
            raise InputError("A contrast needs a model that chooses one class among several.")
        if self.problem == "regression" and target_spec.output not in (None, "logit"):
            raise InputError("A regression has no probabilities: leave the output away.")
        if target_spec.target == "all":
            chosen = [label for label in range(len(self.labels)) if label != rival]
        else:
            chosen = [
                self.said(encoding, target_spec).ids[0]
                if target_spec.target is None
                else self.label_id(target_spec.target)
            ]
        if chosen == [rival]:
            raise InputError(f"The target and the contrast are both {self.labels[chosen[0]]!r}: name two classes.")
        return [(encoding, self.target_of(label, rival, target_spec.output)) for label in chosen]

    def predict(self, encodings: Sequence[Encoding]) -> list[Prediction]:
        answers = []
        for logits in self.logits(encodings, [None] * len(encodings)):
            row = logits[0]
            if self.problem == "regression":
                shown, best = row, int(row.argmax())
            else:
                shown = row.sigmoid() if self.problem == "multi_label" else row.softmax(-1)
                best = int(shown.argmax())
            order = shown.argsort(descending=True)[:5].tolist()
            top = tuple((self.labels[i], float(shown[i])) for i in order)
            target = self.target_of(best, None, None)
            outcomes = tuple((i,) for i in order)
            exclusive = self.problem == "single_label"
            answers.append(Prediction(target, float(shown[best]), top, outcomes, self.probable, exclusive))
        return answers

    def columns(self, output: Any, chunk: Chunk) -> Columns:
        logits = output.logits  # [b v]
        put = lambda values: torch.from_numpy(chunk.spread(values)).to(logits.device)  # noqa: E731
        if chunk.parts[0].target is None:
            return Columns(logits[:, None, :], torch.zeros(len(logits), 1, dtype=torch.long))
        ids = put([np.array(part.target.ids) for part in chunk.parts])  # type: ignore[union-attr]
        if self.problem == "multi_label":  # each label is a choice of its own: no (logit 0) or yes (its logit)
            yes = logits.gather(1, ids)
            return Columns(torch.stack([torch.zeros_like(yes), yes], -1), torch.ones_like(ids))
        if self.problem == "regression":
            return Columns(logits.gather(1, ids)[..., None], torch.zeros_like(ids))
        rivals = [part.target.contrast for part in chunk.parts]  # type: ignore[union-attr]
        if all(rival is None for rival in rivals):
            return Columns(logits[:, None, :], ids)
        return Columns(logits[:, None, :], ids, put([np.array(rival) for rival in rivals]))
