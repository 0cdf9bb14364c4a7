"""Experiment: the majority-class language, what a model believes when only some bits are left (P0).

Of seventeen random bits each is kept with probability 1/2; with n kept ones, n₁ of them 1, the majority is 1 with

    P = P[Binomial(17 − n, 1/2) ≥ 9 − n₁]

which a model that behaves on parts of a context should say. Vafa et al. 2021, section 4.2 and Figure 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import EvaluatedText, Evaluation
from raison.core.records import Example
from raison.models.protocol import Question
from raison.studies.reproduce.experiment import (
    ResultRow,
    Trial,
    evaluation_of_rows,
    experiment,
    experiment_column,
)

__all__ = [
    "LANGUAGE",
    "MajoritySentence",
    "majority_belief",
    "majority_sentences",
    "token_losses_in_majority_language",
    "true_probability_of_majority",
]

LANGUAGE = "majority-class language"
BITS = 17
OPTIMUM = 2 ** (BITS / (BITS + 3))  # seventeen coins, and three tokens that follow from them
BINS = 11


@dataclass(frozen=True)
class MajorityRow(ResultRow):
    """The numbers of one sentence."""

    error: float = experiment_column("|P(1) − truth|", higher=False)
    loss: float = experiment_column("mean −log f of the twenty predictions", higher=False)


@dataclass(frozen=True)
class MajoritySentence:
    """Random bits, "=" and their majority; and which of the bits [17] are kept in a part."""

    text: str
    kept: np.ndarray

    @property
    def prompt(self) -> str:
        """All but the majority."""
        return self.text[:-2]

    @property
    def majority(self) -> str:
        return self.text[-1]

    @property
    def truth(self) -> float:
        """The true probability that the majority is 1, given the kept bits."""
        bits = np.array(self.text.split()[:BITS], dtype=int)
        kept_count = int(self.kept.sum())
        kept_ones = int(bits[self.kept].sum())
        return true_probability_of_majority(kept_count, kept_ones)


def true_probability_of_majority(kept: int, ones: int) -> float:
    """That most of all bits are 1, of which `kept` are known and `ones` of these are 1."""
    unknown = BITS - kept
    needed = max(0, BITS // 2 + 1 - ones)
    ways = 0
    for more_ones in range(needed, unknown + 1):
        ways += comb(unknown, more_ones)
    return float(ways / 2**unknown)


@experiment("majority")
def majority_belief(trial: Trial) -> Evaluation:
    """Error of the belief about the majority on random parts, and the loss on whole texts."""
    rows, truths, beliefs, texts = [], [], [], []
    for number, sentence in enumerate(majority_sentences(trial.count, trial.seed)):
        belief = believed_probability(trial, sentence)
        truths.append(sentence.truth)
        beliefs.append(belief)
        loss = float(np.mean(token_losses_in_majority_language(trial, sentence.text)))
        rows.append(MajorityRow(error=abs(belief - sentence.truth), loss=loss))
        texts.append(EvaluatedText(str(number), sentence.prompt, label=sentence.majority))

    losses = [row.loss for row in rows]
    perplexity = np.exp(float(np.mean(losses)))
    above = perplexity / OPTIMUM - 1
    note = (
        f"Perplexity of whole texts {perplexity:.4f}; the optimum is {OPTIMUM:.4f} ({above:+.2%})."
    )
    (title,) = trial.methods
    evaluation = evaluation_of_rows(
        trial, MajorityRow.columns(), {title: rows}, data=LANGUAGE, notes=[note]
    )
    curves = {"calibration_curve": {title: calibration_curve_of_majority_belief(truths, beliefs)}}
    return replace(evaluation, texts=tuple(texts), curves=curves)


def majority_sentences(count: int, seed: int) -> Iterator[MajoritySentence]:
    """So many sentences of the language."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        bits = draw.integers(0, 2, BITS)
        kept = draw.random(BITS) < 0.5
        majority = int(bits.sum() > BITS // 2)
        text = " ".join(map(str, bits))
        yield MajoritySentence(f"{text} = {majority}", kept)


def believed_probability(trial: Trial, sentence: MajoritySentence) -> float:
    """The model's P(1) when of the bits only the kept ones are there; <s> and = always are."""
    model: Any = trial.model
    (encoding,) = model.encode([Example(sentence.prompt)])
    places = np.flatnonzero(encoding.start >= 0)
    if len(places) != BITS + 1:
        raise InputError(
            f"{model.name} does not read bits one by one: pass a model of recipes/majority.py."
        )
    keep = np.ones((1, len(encoding)), bool)
    bits = places[:BITS]
    keep[0, bits[~sentence.kept]] = False

    token = model.codec.own.convert_tokens_to_ids("1")
    target = replace(model.next_target(encoding, token), output="prob")
    (answer,) = model.score([Question(encoding, target, keep)], removal="delete")
    return float(answer.value[0, 0])


def token_losses_in_majority_language(trial: Trial, text: str) -> list[float]:
    """−log f of each token after <s>, and of the end."""
    model: Any = trial.model
    (encoding,) = model.encode([Example(text)])
    end = model.codec.own.eos_token_id
    followers = [*encoding.ids[1:].tolist(), end]
    everything = np.ones((1, len(encoding)), bool)
    questions = []
    for place, token in enumerate(followers, 1):
        target = model.next_target(encoding, token, place)
        questions.append(Question(encoding, target, everything))
    answers = model.score(questions, removal="delete")
    return [-float(answer.value[0, 0]) for answer in answers]


def calibration_curve_of_majority_belief(
    truths: Sequence[float], beliefs: Sequence[float]
) -> list[float]:
    """Mean belief by the true probability, in bins around 0, 0.1 … 1; where a bin is empty, its neighbours' middle."""
    scaled = np.array(truths) * (BINS - 1)
    bins = np.rint(scaled).astype(int)
    believed = np.array(beliefs)
    filled = np.unique(bins)
    means = []
    for number in filled:
        in_bin = believed[bins == number]
        means.append(in_bin.mean())
    curve: list[float] = np.interp(np.arange(BINS), filled, means).tolist()
    return curve
