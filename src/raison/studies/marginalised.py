"""A token left out against the same token marginalised out: is deletion what a model would say itself?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from raison.core import progress
from raison.core.records import Encoding, Target
from raison.models.float64 import as_float64
from raison.models.protocol import Question
from raison.models.transformers_model import TransformersWriter
from raison.studies.compatibility_report import MarginalisedToken

__all__ = ["compare_with_marginalised", "marginalise_second_token"]

LIKELY = 200  # tokens over which the missing one is marginalised
ROWS = 50  # that run together


@dataclass(frozen=True)
class Marginalised:
    """The fourth token's distribution with the second one marginalised out."""

    distribution: torch.Tensor  # [v] p(y_4 | y_1, y_3)
    covered: float  # the share of f(y_2 | y_1) over which it was summed


def compare_with_marginalised(
    model: TransformersWriter, encodings: Sequence[Encoding]
) -> list[MarginalisedToken]:
    """What the model itself says with the second token marginalised out, and with it left out.

    Asked about are the likeliest fourth token by the first and the one that stands in the text.
    """
    compared = []
    for number, encoding in enumerate(encodings):
        progress.report(number, len(encodings), "tokens marginalised")
        places = np.flatnonzero(~encoding.fixed)[:4]
        if len(places) < 4:
            continue
        are_neighbours = places[3] - places[0] == 3
        if not are_neighbours:
            continue
        truth = marginalise_second_token(model, encoding, places)
        fourth = int(places[3])
        tokens = {
            "likeliest": int(truth.distribution.argmax()),
            "actual": int(encoding.ids[fourth]),
        }
        for kind, token in tokens.items():
            row = MarginalisedToken(
                kind=kind,
                token=model.codec.name(token),
                true=float(truth.distribution[token]),
                masked=probability_without_second_token(model, encoding, places, token),
                covered=truth.covered,
            )
            compared.append(row)
    return compared


def probability_without_second_token(
    model: TransformersWriter, encoding: Encoding, places: np.ndarray, token: int
) -> float:
    """f(y_4 | y_1, y_3) of one token; the third token stays, since the target is read from it."""
    keep = np.zeros((1, len(encoding)), bool)
    keep[0, places[0]] = True
    fourth = int(places[3])
    target = Target("token", (token,), (fourth,), model.codec.name(token), "prob")
    question = Question(encoding, target, keep)
    with progress.silence():
        (scored,) = model.score([question], removal="delete")
    return float(scored.value[0, 0])


@torch.inference_mode()
def marginalise_second_token(
    model: TransformersWriter, encoding: Encoding, places: np.ndarray
) -> Marginalised:
    """p(y_4 | y_1, y_3) = Σ_k f(k | y_1) f(y_3 | y_1 k) f(y_4 | y_1 k y_3) / Σ_k f(k | y_1) f(y_3 | y_1 k)."""
    second = int(places[1])
    third = int(places[2])
    first_ids = encoding.ids[: third + 1].copy()
    ids = torch.from_numpy(first_ids).to(model.device)
    first_logits = logits_of_token_rows(model, ids[None, :second])
    next_token = first_logits[0, -1].softmax(-1)
    count = min(LIKELY, len(next_token))
    mass, likely = next_token.topk(count)
    rows = ids.repeat(len(likely), 1)
    rows[:, second] = likely

    weights = torch.zeros_like(mass)
    mixed = torch.zeros_like(next_token)
    for start in range(0, len(rows), ROWS):
        part = slice(start, start + ROWS)
        logits = logits_of_token_rows(model, rows[part])
        third_token = logits[:, second].softmax(-1)
        weights[part] = mass[part] * third_token[:, int(ids[third])]
        fourth_token = logits[:, third].softmax(-1)
        mixed += weights[part] @ fourth_token
    return Marginalised(mixed / weights.sum(), float(mass.sum()))


def logits_of_token_rows(model: TransformersWriter, rows: torch.Tensor) -> torch.Tensor:
    """[n t v] logits of the plain model, in float64."""
    return as_float64(model.hf(input_ids=rows, attention_mask=torch.ones_like(rows)).logits)
