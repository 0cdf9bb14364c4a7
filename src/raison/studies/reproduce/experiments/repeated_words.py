"""Experiment: is a word that stands alone at a position repeated there? (P0 Figure 4)

The paper has a curve over positions for the word "the"; here the frequent words of a text, so that there is an interval
and a test, with the curve of "the" among them. Positions must be learned (or absolute in another way): with rotary ones
nothing depends on where a lone word stands. What is measured at large, on parts of any size, is `raison compatibility`.
Vafa et al. 2021, section 4.2 and Figure 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.core import progress
from raison.core.errors import InputError
from raison.core.evaluation import EvaluatedText, Evaluation
from raison.core.parameters import check_integer
from raison.core.records import Example
from raison.models.transformers_model import TransformersWriter
from raison.studies.context_blocks import encode_blocks, read_block_texts
from raison.studies.random_parts import measure_random_parts
from raison.studies.reproduce.experiment import (
    ResultRow,
    Trial,
    evaluation_of_rows,
    experiment,
    experiment_column,
)
from raison.studies.word_repetition import WordRepetition, frequent_words, repetition_of_word

__all__ = ["PLACES", "RepetitionRow", "repeated_words"]

PLACES = ("first", "later", "beside")  # specs of the suite: where the word stands
THE = " the"
SUBSET = 10  # tokens of the random parts on which perplexity is told

Curve = dict[str, list[float]]


@dataclass(frozen=True)
class RepetitionRow(ResultRow):
    """The numbers of one word."""

    repeats: float = experiment_column("mean f(w | w)", higher=False)
    top: float = experiment_column(
        "share of the positions at which w is the first choice", higher=False
    )


@experiment("repetition")
def repeated_words(trial: Trial) -> Evaluation:
    """How likely a word is repeated that stands alone, by its position, over the frequent words of a text."""
    run = trial.run
    model = trial.model
    if not isinstance(model, TransformersWriter):
        raise InputError(f"{model.name} does not write: pass a language model or a translator.")
    size = int(run.settings.get("positions", 64))
    check_integer("positions", size, 3)
    size = min(size, model.max_tokens or size)
    asked_places = set(trial.methods.values())
    unknown = asked_places.difference(PLACES)
    if unknown:
        known = ", ".join(PLACES)
        strange = ", ".join(sorted(unknown))
        raise InputError(f"A word stands {known}, not {strange}.")

    count = run.settings.get("blocks", 40)
    texts = read_block_texts(
        model, run.data, split=run.split, limit=count, folder=trial.data_dir, length=size
    )
    plain_texts = [example.text for example in texts]
    words = frequent_words(model, plain_texts, trial.count)
    if len(words) < 2:
        raise InputError(
            f"{run.data} holds no words that {model.name} reads as one token: give other texts."
        )
    others = [*words[1:], words[0]]
    repetitions = []
    for number, (word, other) in enumerate(zip(words, others, strict=True)):
        progress.report(number, len(words), "words repeated")
        repetition = repetition_of_word(model, word, other, size)
        repetitions.append(repetition)

    rows = {}
    for title, place in trial.methods.items():
        rows[title] = [row_of_repeated_word(repetition, place) for repetition in repetitions]
    last = size - 1
    notes = [
        f"The {len(words)} most frequent words of {run.data} that are one token, at the positions 1 to {last}.",
        perplexity_beside_repeated_words(model, texts, size, trial.seed),
    ]
    columns = RepetitionRow.columns()
    evaluation = evaluation_of_rows(trial, columns, rows, data=run.data, notes=notes)
    by_position, by_distance = [], []
    for repetition in repetitions:
        by_position.append(repetition.alone)
        by_distance.append(repetition.beside)
    curves = {
        "repetition_curve": repeated_word_curves(words, by_position),
        "distance_curve": repeated_word_curves(words, by_distance),
    }
    evaluated = [EvaluatedText(word.strip(), word) for word in words]
    return replace(evaluation, texts=tuple(evaluated), curves=curves)


def repeated_word_curves(words: Sequence[str], values: Sequence[np.ndarray]) -> Curve:
    """The curve of "the", if it is there, and the mean of all."""
    curves = {}
    if THE in words:
        number = words.index(THE)
        curves["the"] = values[number].tolist()
    mean = np.mean(values, axis=0)
    curves[f"mean of {len(words)} words"] = mean.tolist()
    return curves


def row_of_repeated_word(repetition: WordRepetition, place: str) -> RepetitionRow:
    """The numbers of a word that stands at the first position, at later ones, or beside another word."""
    if place == "beside":
        repeated = repetition.beside
        is_top = repetition.beside_top
    else:
        positions = slice(1, None)
        if place == "first":
            positions = slice(0, 1)
        repeated = repetition.alone[positions]
        is_top = repetition.alone_top[positions]
    repeats = float(repeated.mean())
    top = float(is_top.mean())
    return RepetitionRow(repeats=repeats, top=top)


def perplexity_beside_repeated_words(
    model: TransformersWriter, texts: Sequence[Example], size: int, seed: int
) -> str:
    """How well the model reads whole contexts and parts of them, in words."""
    blocks = encode_blocks(model, texts, size)
    measured = measure_random_parts(model, blocks, targets=3, sizes=(SUBSET,), seed=seed)
    phrases = []
    for row in reversed(measured.subsets):
        given = f"{row.size} random tokens of it"
        if row.size is None:
            given = "the whole context"
        interval = f"{row.low:.1f} … {row.high:.1f}"
        phrases.append(f"{row.perplexity:.1f} ({interval}) given {given}")
    perplexities = " and ".join(phrases)
    last = measured.subsets[-1]
    return f"Perplexity {perplexities}, in {last.count} places of that text."
