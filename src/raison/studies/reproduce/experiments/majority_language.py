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
        tokens = self.text.split()
        bits = np.array(tokens[:BITS], dtype=int)
        kept_bits = bits[self.kept]
        ones = int(kept_bits.sum())
        return true_probability_of_majority(len(kept_bits), ones)


def true_probability_of_majority(kept: int, ones: int) -> float:
    """That most of all bits are 1, of which `kept` are known and `ones` of these are 1."""
    unknown = BITS - kept
    majority = BITS // 2 + 1
    needed = max(0, majority - ones)
    ways = 0
    for more_ones in range(needed, unknown + 1):
        ways += comb(unknown, more_ones)
    all_ways = 2**unknown
    return float(ways / all_ways)


@experiment("majority")
def majority_belief(trial: Trial) -> Evaluation:
    """Error of the belief about the majority on random parts, and the loss on whole texts."""
    rows, truths, beliefs, texts = [], [], [], []
    for number, sentence in enumerate(majority_sentences(trial.count, trial.seed)):
        truth = sentence.truth
        belief = believed_probability(trial, sentence)
        truths.append(truth)
        beliefs.append(belief)
        error = abs(belief - truth)
        losses_of_tokens = token_losses_in_majority_language(trial, sentence.text)
        loss = float(np.mean(losses_of_tokens))
        row = MajorityRow(error=error, loss=loss)
        rows.append(row)
        text = EvaluatedText(str(number), sentence.prompt, label=sentence.majority)
        texts.append(text)

    losses = [row.loss for row in rows]
    mean_loss = float(np.mean(losses))
    perplexity = np.exp(mean_loss)
    above = perplexity / OPTIMUM - 1
    note = (
        f"Perplexity of whole texts {perplexity:.4f}; the optimum is {OPTIMUM:.4f} ({above:+.2%})."
    )
    (title,) = trial.methods
    columns = MajorityRow.columns()
    evaluation = evaluation_of_rows(trial, columns, {title: rows}, data=LANGUAGE, notes=[note])
    curve = calibration_curve_of_majority_belief(truths, beliefs)
    curves = {"calibration_curve": {title: curve}}
    return replace(evaluation, texts=tuple(texts), curves=curves)


def majority_sentences(count: int, seed: int) -> Iterator[MajoritySentence]:
    """So many sentences of the language."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        bits = draw.integers(0, 2, BITS)
        kept = draw.random(BITS) < 0.5
        ones = bits.sum()
        majority = int(ones > BITS // 2)
        text = " ".join(map(str, bits))
        yield MajoritySentence(f"{text} = {majority}", kept)


def believed_probability(trial: Trial, sentence: MajoritySentence) -> float:
    """The model's P(1) when of the bits only the kept ones are there; <s> and = always are."""
    model: Any = trial.model
    prompt = Example(sentence.prompt)
    (encoding,) = model.encode([prompt])
    in_text = encoding.start >= 0
    places = np.flatnonzero(in_text)
    if len(places) != BITS + 1:
        raise InputError(
            f"{model.name} does not read bits one by one: pass a model of recipes/majority.py."
        )
    keep = np.ones((1, len(encoding)), bool)
    bits = places[:BITS]
    removed = bits[~sentence.kept]
    keep[0, removed] = False

    tokenizer = model.codec.own
    one = tokenizer.convert_tokens_to_ids("1")
    target = model.next_target(encoding, one)
    probability = replace(target, output="prob")
    question = Question(encoding, probability, keep)
    (answer,) = model.score([question], removal="delete")
    return float(answer.value[0, 0])


def token_losses_in_majority_language(trial: Trial, text: str) -> list[float]:
    """−log f of each token after <s>, and of the end."""
    model: Any = trial.model
    (encoding,) = model.encode([Example(text)])
    end = model.codec.own.eos_token_id
    after_start = encoding.ids[1:]
    followers = [*after_start.tolist(), end]
    everything = np.ones((1, len(encoding)), bool)
    questions = []
    for place, token in enumerate(followers, 1):
        target = model.next_target(encoding, token, place)
        question = Question(encoding, target, everything)
        questions.append(question)

    losses = []
    for answer in model.score(questions, removal="delete"):
        log_probability = float(answer.value[0, 0])
        losses.append(-log_probability)
    return losses


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
        mean = in_bin.mean()
        means.append(mean)
    all_bins = np.arange(BINS)
    curve = np.interp(all_bins, filled, means)
    beliefs_by_bin: list[float] = curve.tolist()
    return beliefs_by_bin
