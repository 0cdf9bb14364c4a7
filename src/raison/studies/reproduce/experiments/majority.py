"""The majority-class language: what a model believes when only some bits are left, against the truth (P0).

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
    build_evaluation,
    column_field,
    experiment,
)

__all__ = [
    "LANGUAGE",
    "Sentence",
    "majority_belief",
    "sentences",
    "token_losses",
    "true_probability",
]

LANGUAGE = "majority-class language"
BITS = 17
OPTIMUM = 2 ** (BITS / (BITS + 3))  # seventeen coins, and three tokens that follow from them
BINS = 11


@dataclass(frozen=True)
class MajorityRow(ResultRow):
    """The numbers of one sentence."""

    error: float = column_field("|P(1) − truth|", higher=False)
    loss: float = column_field("mean −log f of the twenty predictions", higher=False)


@dataclass(frozen=True)
class Sentence:
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
        bits = np.array([int(bit) for bit in self.text.split()[:BITS]])
        return true_probability(int(self.kept.sum()), int(bits[self.kept].sum()))


def true_probability(kept: int, ones: int) -> float:
    """That most of all bits are 1, of which `kept` are known and `ones` of these are 1."""
    unknown, needed = BITS - kept, BITS // 2 + 1 - ones
    ways = sum(comb(unknown, k) for k in range(max(0, needed), unknown + 1))
    return float(ways / 2**unknown)


@experiment("majority")
def majority_belief(trial: Trial) -> Evaluation:
    """Error of the belief about the majority on random parts, and the loss on whole texts."""
    rows, truths, beliefs, texts = [], [], [], []
    for number, sentence in enumerate(sentences(trial.count, trial.seed)):
        belief = believed_probability(trial, sentence)
        truths.append(sentence.truth)
        beliefs.append(belief)
        loss = float(np.mean(token_losses(trial, sentence.text)))
        rows.append(MajorityRow(error=abs(belief - sentence.truth), loss=loss))
        texts.append(EvaluatedText(str(number), sentence.prompt, label=sentence.majority))

    perplexity = np.exp(float(np.mean([row.loss for row in rows])))
    above = perplexity / OPTIMUM - 1
    note = (
        f"Perplexity of whole texts {perplexity:.4f}; the optimum is {OPTIMUM:.4f} ({above:+.2%})."
    )
    (title,) = trial.methods
    evaluation = build_evaluation(
        trial, MajorityRow.columns(), {title: rows}, data=LANGUAGE, notes=[note]
    )
    curves = {"calibration_curve": {title: calibration(truths, beliefs)}}
    return replace(evaluation, texts=tuple(texts), curves=curves)


def sentences(count: int, seed: int) -> Iterator[Sentence]:
    """So many sentences of the language."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        bits = draw.integers(0, 2, BITS)
        kept = draw.random(BITS) < 0.5
        majority = int(bits.sum() > BITS // 2)
        yield Sentence(f"{' '.join(map(str, bits))} = {majority}", kept)


def believed_probability(trial: Trial, sentence: Sentence) -> float:
    """The model's P(1) when of the bits only the kept ones are there; <s> and = always are."""
    model: Any = trial.model
    (encoding,) = model.encode([Example(sentence.prompt)])
    places = np.flatnonzero(encoding.start >= 0)
    if len(places) != BITS + 1:
        raise InputError(
            f"{model.name} does not read bits one by one: pass a model of recipes/majority.py."
        )
    keep = np.ones((1, len(encoding)), bool)
    keep[0, places[:BITS][~sentence.kept]] = False

    token = model.codec.own.convert_tokens_to_ids("1")
    target = replace(model.next_target(encoding, token), output="prob")
    (answer,) = model.score([Question(encoding, target, keep)], removal="delete")
    return float(answer.value[0, 0])


def token_losses(trial: Trial, text: str) -> list[float]:
    """−log f of each token after <s>, and of the end."""
    model: Any = trial.model
    (encoding,) = model.encode([Example(text)])
    end = model.codec.own.eos_token_id
    followers = [*(int(token) for token in encoding.ids[1:]), end]
    targets = [
        model.next_target(encoding, token, place) for place, token in enumerate(followers, 1)
    ]
    everything = np.ones((1, len(encoding)), bool)
    answers = model.score(
        [Question(encoding, target, everything) for target in targets], removal="delete"
    )
    return [-float(answer.value[0, 0]) for answer in answers]


def calibration(truths: Sequence[float], beliefs: Sequence[float]) -> list[float]:
    """Mean belief by the true probability, in bins around 0, 0.1 … 1; where a bin is empty, its neighbours' middle."""
    bins = np.rint(np.array(truths) * (BINS - 1)).astype(int)
    believed = np.array(beliefs)
    filled = np.unique(bins)
    means = [believed[bins == number].mean() for number in filled]
    curve = np.interp(np.arange(BINS), filled, means)
    return [float(value) for value in curve]
