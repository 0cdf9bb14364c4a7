"""What an audit found: numbers with their spread, texts word by word, and a verdict in plain words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from raison.metrics.statistics import mean_interval
from raison.studies.audit.adversary import Adversary
from raison.studies.audit.verdict import verdict

__all__ = ["Audit", "Shown", "Spread"]


@dataclass(frozen=True)
class Spread:
    """A number of every text: mean with its interval, deviation, and how many texts it is not defined for."""

    mean: float
    low: float
    high: float
    deviation: float
    count: int
    left_out: int
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Sequence[float], seed: int) -> Spread:
        every = np.asarray(values, np.float64)
        kept = every[np.isfinite(every)]
        if not len(kept):
            return cls(float("nan"), float("nan"), float("nan"), float("nan"), 0, len(every))
        found = mean_interval(kept, seed=seed)
        spread = float(kept.std(ddof=1)) if len(kept) > 1 else float("nan")
        shown = tuple(round(float(v), 6) for v in kept)
        return cls(
            float(found.estimate), float(found.low), float(found.high), spread, len(kept), len(every) - len(kept), shown
        )


@dataclass(frozen=True)
class Shown:
    """A text with what each of its words gets and says."""

    tokens: tuple[str, ...]
    attention: tuple[float, ...]
    probability: tuple[float, ...]  # of the predicted class, from this word alone; empty where that is not defined
    gradient: tuple[float, ...]
    predicted: str
    label: str


@dataclass(frozen=True)
class Audit:
    """What was found; numbers that are not defined for a model are not there."""

    model: str
    data: str
    count: int
    accuracy: float
    f1: float
    f1_of: str = ""  # the class that it is the F1 of (NaN where no text has it); or of all classes, their mean
    commonest: float = 0.0  # share of the commonest label
    replaced: dict[str, Any] = field(default_factory=dict)  # uniform, permuted: accuracy, f1 and how far they fall
    agreement: dict[str, Spread] = field(default_factory=dict)  # τ-b of attention with importance
    entropy: dict[str, Spread] = field(default_factory=dict)
    token_probability: Spread | None = None
    information: dict[str, Any] = field(default_factory=dict)
    instance: Spread | None = None  # the largest JSD of an attention with the same answer, where it can be large
    adversaries: tuple[Adversary, ...] = ()
    texts: tuple[Shown, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps(known({**asdict(self), "verdict": self.verdict()}), indent=1, ensure_ascii=False)

    def verdict(self) -> list[str]:
        """What the numbers say, in sentences; the last one answers the question."""
        return verdict(self)


def known(value: Any) -> Any:
    """What JSON can hold: a number that is not defined is null."""
    if isinstance(value, dict):
        return {key: known(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [known(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
