"""The texts of a run: the first ones of its data set that fit, with what the model says about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.open import open_dataset
from raison.models.protocol import Model, Prediction
from raison.studies.prompts import answer_quality, question_prompt, with_written_answer
from raison.studies.reproduce.suite import SuiteRun

__all__ = ["TextsOfRun", "choose_texts_of_run"]


@dataclass(frozen=True)
class TextsOfRun:
    """Texts, what the model says about each, and how many were looked at to find them."""

    examples: list[Example]
    predictions: list[Prediction]
    read: int

    def how_right(self, model: Model) -> str:
        """How often the model is right on these texts, in words."""
        pairs = list(zip(self.examples, self.predictions, strict=True))
        if model.task == "qa" or self.examples[0].target is not None:
            answers = []
            for pair in pairs:
                answers.append(given_answer(*pair))
            return answer_quality(answers, self.examples)
        right = []
        for example, prediction in pairs:
            right.append(prediction.target.text == str(example.label))
        return f"The model is right on {np.mean(right):.1%} of these texts."


def given_answer(example: Example, prediction: Prediction) -> str:
    """What a model answers: what it wrote as the target of the example, or what it predicts."""
    if example.target is None:
        return prediction.target.text
    return str(example.target)


def choose_texts_of_run(
    model: Model, run: SuiteRun, data: str, count: int, data_dir: Any
) -> TextsOfRun:
    """The first texts that fit, what the model says about them, and how many were looked at for them."""
    loaded = open_dataset(data, split=run.split, data=data_dir, skip_broken=True)
    examples: list[Example] = []
    predictions: list[Prediction] = []
    for number, example in enumerate(loaded.examples, 1):
        chosen = text_for_run(model, run, example)
        if chosen is None:
            continue
        examples.append(chosen[0])
        predictions.append(chosen[1])
        if len(examples) == count:
            return TextsOfRun(examples, predictions, read=number)
    if not examples:
        raise InputError(
            f"No text of {data} has {run.shortest} to {run.longest} tokens and fits the suite."
        )
    return TextsOfRun(examples, predictions, read=len(loaded.examples))


def text_for_run(
    model: Model, run: SuiteRun, example: Example
) -> tuple[Example, Prediction] | None:
    """The example as the model is asked about it, and what it says; None where it does not fit the run."""
    if run.label and str(example.label) != run.label:
        return None
    if run.prompt:
        example = question_prompt(example, run.prompt)
    (encoding,) = model.encode([example], truncate=True)
    if not run.shortest <= len(encoding) <= run.longest:
        return None
    (prediction,) = model.predict([encoding])
    if run.least and dict(prediction.top).get(str(example.label), 0.0) < run.least:
        return None
    if run.prompt:
        example = with_written_answer(model, example)
        if example.target is None:  # it writes nothing, so nothing can be explained
            return None
    return example, prediction
