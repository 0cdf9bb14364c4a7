"""The majority-class language: what a model believes when only some bits are left, against the truth (P0).

Of seventeen random bits each is kept with probability 1/2; with n kept ones, n₁ of them 1, the majority is 1 with

    P = P[Binomial(17 − n, 1/2) ≥ 9 − n₁]

which a model that behaves on parts of a context should say. Vafa et al. 2021, section 4.2 and Figure 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import comb

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import Column, EvaluatedText, Evaluation
from raison.core.records import Example
from raison.models.protocol import Question
from raison.studies.reproduce.experiment import Number, Trial, experiment, found

__all__ = ["LANGUAGE", "loss", "majority", "sentences", "true_probability"]

LANGUAGE = "majority-class language"
BITS = 17
OPTIMUM = 2 ** (BITS / (BITS + 3))  # seventeen coins, and three tokens that follow from them
BINS = 11
COLUMNS = (
    Column("error", "|P(1) − truth|", False),
    Column("loss", "mean −log f of the twenty predictions", False),
)


def true_probability(kept: int, ones: int) -> float:
    """That most of all bits are 1, of which `kept` are known and `ones` of these are 1."""
    unknown, needed = BITS - kept, BITS // 2 + 1 - ones
    return sum(comb(unknown, k) for k in range(max(0, needed), unknown + 1)) / 2**unknown


@experiment("majority")
def majority(trial: Trial) -> Evaluation:
    """Error of the belief about the majority on random parts, and the loss on whole texts."""
    model = trial.model
    rows: list[dict[str, Number]] = []
    beliefs, texts = [], []
    for number, (text, kept) in enumerate(sentences(trial.count, trial.seed)):
        bits = np.array([int(bit) for bit in text.split()[:BITS]])
        prompt, last = text[:-2], text[-1]
        belief = believed(trial, prompt, kept)
        truth = true_probability(int(kept.sum()), int(bits[kept].sum()))
        rows.append({"error": abs(belief - truth), "loss": float(np.mean(loss(trial, text)))})
        beliefs.append((truth, belief))
        texts.append(EvaluatedText(str(number), prompt, label=last))
    mean = float(np.mean([row["loss"] for row in rows]))
    above = np.exp(mean) / OPTIMUM - 1
    told = [f"Perplexity of whole texts {np.exp(mean):.4f}; the optimum is {OPTIMUM:.4f} ({above:+.2%})."]
    (title,) = trial.methods
    made = found(trial, COLUMNS, {title: rows}, data=LANGUAGE, about=told)
    curves = {"calibration_curve": {title: calibration(np.array(beliefs))}}
    return replace(made, texts=tuple(texts), curves=curves, model=model.name)


def sentences(count: int, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Random bits, "=" and their majority; and which of the bits [17] are kept in a part."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        bits = draw.integers(0, 2, BITS)
        kept = draw.random(BITS) < 0.5
        yield f"{' '.join(map(str, bits))} = {int(bits.sum() > BITS // 2)}", kept


def believed(trial: Trial, text: str, kept: np.ndarray) -> float:
    """The model's P(1) when of the bits only `kept` are there; <s> and = always are."""
    (encoding,) = trial.model.encode([Example(text)])
    place = np.flatnonzero(encoding.start >= 0)
    if len(place) != BITS + 1:
        raise InputError(f"{trial.model.name} does not read bits one by one: pass a model of recipes/majority.py.")
    keep = np.ones((1, len(encoding)), bool)
    keep[0, place[:BITS][~kept]] = False
    token = trial.model.codec.own.convert_tokens_to_ids("1")  # type: ignore[attr-defined]
    target = replace(trial.model.next_target(encoding, token), output="prob")  # type: ignore[attr-defined]
    return float(trial.model.score([Question(encoding, target, keep)], removal="delete")[0].value[0, 0])


def loss(trial: Trial, text: str) -> list[float]:
    """−log f of each token after <s>, and of the end."""
    model = trial.model
    (encoding,) = model.encode([Example(text)])
    ids = [int(token) for token in encoding.ids]
    end = model.codec.own.eos_token_id  # type: ignore[attr-defined]
    targets = [
        model.next_target(encoding, token, place)  # type: ignore[attr-defined]
        for place, token in enumerate([*ids[1:], end], 1)
    ]
    everything = np.ones((1, len(encoding)), bool)
    answers = model.score([Question(encoding, target, everything) for target in targets], removal="delete")
    return [-float(answer.value[0, 0]) for answer in answers]


def calibration(pairs: np.ndarray) -> list[float]:
    """Mean belief by the true probability, in bins around 0, 0.1 … 1; where a bin is empty, its neighbours' middle."""
    bins = np.rint(pairs[:, 0] * (BINS - 1)).astype(int)
    places = np.unique(bins)
    means = [pairs[bins == each, 1].mean() for each in places]
    return np.interp(np.arange(BINS), places, means).tolist()
