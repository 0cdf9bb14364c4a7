"""How a metric asks the model: it yields sets of units that are kept, and is sent what the model says about each."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raison.metrics.numbers import Numbers

__all__ = ["Answers", "KeptSets", "MetricQuestions"]

# prob: the target's probability; value: what the scores explain, e.g. its logit
AskedOutput = Literal["prob", "value"]


@dataclass(frozen=True)
class KeptSets:
    """A question to the model: what becomes of the target when only these units are there?"""

    units: np.ndarray  # [n u] True = kept
    output: AskedOutput = "prob"


@dataclass(frozen=True)
class Answers:
    """The model's answers to one question, one for each kept set."""

    value: (
        np.ndarray
    )  # [n] probability of the target (of all its tokens), or its value; see `KeptSets.output`
    log: np.ndarray  # [n] its logarithm, where it is a probability; else the value itself
    predicted: np.ndarray  # [n m] the best outcome of each token of the target


MetricQuestions = Generator[KeptSets, Answers, Numbers]
