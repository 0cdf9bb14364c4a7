"""Token classification: the target is the tag of a word, read at its first token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.records import Encoding, Example, Target
from raison.core.units import group
from raison.models.axis import axis_of
from raison.models.protocol import PREDICTED, Prediction, TargetSpec
from raison.models.runner.adapter import Adapter
from raison.models.runner.answers import Columns
from raison.models.runner.batching import Chunk
from raison.models.tasks.generation import vocabulary_columns

__all__ = ["Tagger"]

OUTSIDE = ("O", "LABEL_0")


class Tagger(Adapter):
    """A token classifier; without a target every tagged word is explained, one result each."""

    task = "tagging"

    def encode_one(self, example: Example, *, truncate: bool) -> Encoding:
        return axis_of(self, example, ("text",) if example.pair is None else ("first", "second"), truncate=truncate)

    def heads_of_words(self, encoding: Encoding) -> list[tuple[int, str]]:
        """First token and text of every word."""
        units = group(encoding, "word")
        return [(int(np.flatnonzero(units.of == u)[0]), name) for u, name in enumerate(units.names)]

    def target_of(self, row: int, word: str, tag: int, output: str | None = None) -> Target:
        return Target("tag", (tag,), (row,), f"{word} is {self.labels[tag]}", output or "logit")

    def tags(self, encoding: Encoding) -> torch.Tensor:
        """[t v] probabilities of the tags of each token."""
        (logits,) = self.logits([encoding], [None])
        return logits.softmax(-1)

    def predict(self, encodings: Sequence[Encoding]) -> list[Prediction]:
        answers = []
        for encoding in encodings:
            found = self.tags(encoding)
            words = self.heads_of_words(encoding)
            if not words:
                raise InputError(f"There is no word to tag in {encoding.texts[0][:40]!r}: give a longer text.")
            best = [(float(found[row].max()), row, word, int(found[row].argmax())) for row, word in words]
            tagged = [b for b in best if self.labels[b[3]] not in OUTSIDE] or best
            probability, row, word, tag = max(tagged, key=lambda b: b[0])
            top = tuple((f"{w}: {self.labels[t]}", p) for p, _, w, t in tagged[:5])
            answers.append(Prediction(self.target_of(row, word, tag), probability, top))
        return answers

    def resolve_targets(self, encoding: Encoding, target_spec: TargetSpec = PREDICTED) -> list[tuple[Encoding, Target]]:
        found = self.tags(encoding).argmax(-1)
        words = self.heads_of_words(encoding)
        chosen = self.chosen(words, [self.labels[int(tag)] for tag in found], target_spec)
        if not chosen:  # nothing tagged: the word that the model is surest of
            best = self.said(encoding, target_spec).positions[0]
            chosen = [(row, word) for row, word in words if row == best]
        targets = [self.target_of(row, word, int(found[row]), target_spec.output) for row, word in chosen]
        return [(encoding, self.contrasted(target, target_spec.contrast)) for target in targets]

    def chosen(self, words: list[tuple[int, str]], tags: list[str], target_spec: TargetSpec) -> list[tuple[int, str]]:
        """The words that a target is about: all, of a tag, by text or by token number; without one, the tagged ones."""
        if target_spec.target is None:
            return [(row, word) for row, word in words if tags[row] not in OUTSIDE]
        if target_spec.target == "all":
            return words
        text = str(target_spec.target)
        found = (
            [(row, word) for row, word in words if row == target_spec.number]
            or [(row, word) for row, word in words if tags[row] == text]
            or [(row, word) for row, word in words if word.lower() == text.lower()]
        )
        if not found:
            raise InputError(f"{text!r} is neither a word of the text nor a tag that {self.name} gives it.")
        return found

    def contrasted(self, target: Target, contrast: Any) -> Target:
        if contrast is None:
            return target
        if str(contrast) not in self.labels:
            raise InputError(f"{self.name} has no tag {str(contrast)!r}: its tags are {', '.join(self.labels)}.")
        rival = self.labels.index(str(contrast))
        if (rival,) == target.ids:
            raise InputError(f"The target and the contrast are both {str(contrast)!r}: name two tags.")
        return replace(target, contrast=(rival,), contrast_text=str(contrast))

    def unpadded(self, logits: torch.Tensor, real: slice) -> torch.Tensor:
        return logits[real]

    def columns(self, output: Any, chunk: Chunk) -> Columns:
        if chunk.parts[0].target is None:
            return Columns(output.logits, torch.zeros(output.logits.shape[:2], dtype=torch.long))
        return vocabulary_columns(self, output.logits, chunk)
