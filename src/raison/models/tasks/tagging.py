"""Token classification: the target is the tag of a word, read at its first token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.records import Encoding, Example, Target
from raison.core.units import group_tokens
from raison.models.protocol import Prediction, TargetSpec
from raison.models.runner.answers import Columns
from raison.models.runner.batching import Chunk
from raison.models.runner.output_format import Output
from raison.models.runner.runner import Runner
from raison.models.tasks.base import Task, axis_of, columns_at_rows, outcomes_of_texts

__all__ = ["TaggingTask"]

OUTSIDE = ("O", "LABEL_0")
BEST = 5  # words that a prediction shows


@dataclass(frozen=True)
class TaggedWord:
    """A word, and the tag that the model gives it."""

    row: int  # its first token, at which the tag is read
    word: str
    tag: int
    label: str
    probability: float

    @property
    def is_outside(self) -> bool:
        """The tag says that the word is nothing special."""
        return self.label in OUTSIDE


class TaggingTask(Task):
    """A token classifier; without a target every tagged word is explained, one result each."""

    name = "tagging"
    token_axis = 0  # of outcomes [t v]

    # -- texts and targets ------------------------------------------------------------------------------

    def encode(self, example: Example, *, truncate: bool) -> Encoding:
        names = ("text",) if example.pair is None else ("first", "second")
        return axis_of(self.loaded, example, names, truncate=truncate)

    def resolve_targets(
        self, runner: Runner, encoding: Encoding, target_spec: TargetSpec
    ) -> list[tuple[Encoding, Target]]:
        words = self.tagged_words(runner, encoding)
        chosen = self.chosen_words(words, target_spec)
        if not chosen:  # nothing tagged: the word that the model is surest of
            best = self.predicted_target(runner, encoding, target_spec).positions[0]
            chosen = [word for word in words if word.row == best]
        targets = []
        for word in chosen:
            target = tag_target(word, target_spec.output)
            targets.append((encoding, self.contrasted(target, target_spec.contrast)))
        return targets

    def chosen_words(self, words: list[TaggedWord], target_spec: TargetSpec) -> list[TaggedWord]:
        """The words that a target is about: all, of a tag, by text or by token number; without one, the tagged ones."""
        if target_spec.target is None:
            return [word for word in words if not word.is_outside]
        if target_spec.target == "all":
            return words
        text = str(target_spec.target)
        by_number = [word for word in words if word.row == target_spec.number]
        by_tag = [word for word in words if word.label == text]
        by_text = [word for word in words if word.word.lower() == text.lower()]
        found = by_number or by_tag or by_text
        if not found:
            raise InputError(
                f"{text!r} is neither a word of the text nor a tag that {self.loaded.name} gives it."
            )
        return found

    def contrasted(self, target: Target, contrast: object) -> Target:
        """The target with another tag as its contrast, if there is one."""
        if contrast is None:
            return target
        name = str(contrast)
        if name not in self.labels:
            raise InputError(
                f"{self.loaded.name} has no tag {name!r}: its tags are {', '.join(self.labels)}."
            )
        rival = self.labels.index(name)
        if (rival,) == target.ids:
            raise InputError(f"The target and the contrast are both {name!r}: name two tags.")
        return replace(target, contrast=(rival,), contrast_text=name)

    # -- outcomes ---------------------------------------------------------------------------------------

    def tagged_words(self, runner: Runner, encoding: Encoding) -> list[TaggedWord]:
        """Every word with the tag that the model gives it."""
        (logits,) = outcomes_of_texts(runner, [encoding])
        probabilities = logits.softmax(-1)  # [t v]
        units = group_tokens(encoding, "word")
        labels = self.labels
        words = []
        for unit, name in enumerate(units.names):
            row = int(np.flatnonzero(units.of == unit)[0])
            tag = int(probabilities[row].argmax())
            word = TaggedWord(
                row=row,
                word=name,
                tag=tag,
                label=labels[tag],
                probability=float(probabilities[row].max()),
            )
            words.append(word)
        return words

    def predict(self, runner: Runner, encodings: Sequence[Encoding]) -> list[Prediction]:
        return [self.prediction_of(runner, encoding) for encoding in encodings]

    def prediction_of(self, runner: Runner, encoding: Encoding) -> Prediction:
        """The tagged word that the model is surest of; of all words where it tags none."""
        words = self.tagged_words(runner, encoding)
        if not words:
            raise InputError(
                f"There is no word to tag in {encoding.texts[0][:40]!r}: give a longer text."
            )
        tagged = [word for word in words if not word.is_outside] or words
        best = max(tagged, key=lambda word: word.probability)
        top = [(f"{word.word}: {word.label}", word.probability) for word in tagged[:BEST]]
        return Prediction(target=tag_target(best), value=best.probability, top=tuple(top))

    def columns(self, output: Output, chunk: Chunk) -> Columns:
        logits: torch.Tensor = output.logits  # [b t v]
        if chunk.asked is None:
            return Columns(logits, torch.zeros(logits.shape[:2], dtype=torch.long))
        return columns_at_rows(logits, chunk.asked, picked=chunk.picked)


def tag_target(word: TaggedWord, output: str | None = None) -> Target:
    """The tag of a word as a target."""
    return Target(
        kind="tag",
        ids=(word.tag,),
        positions=(word.row,),
        text=f"{word.word} is {word.label}",
        output=output or "logit",
    )
