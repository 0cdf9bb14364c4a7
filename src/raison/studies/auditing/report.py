"""What an audit found: numbers with their spread, texts word by word, and a verdict in plain words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from raison.metrics.statistics import mean_interval
from raison.studies.auditing.adversary import Adversary

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
    f1_of: str = ""  # the class that it is the F1 of; or of all classes, their mean
    replaced: dict[str, Any] = field(default_factory=dict)  # uniform, permuted: accuracy, f1 and how far they fall
    agreement: dict[str, Spread] = field(default_factory=dict)  # τ-b of attention with importance
    entropy: dict[str, Spread] = field(default_factory=dict)
    token_probability: Spread | None = None
    information: dict[str, Any] = field(default_factory=dict)
    instance: Spread | None = None  # the largest JSD of an attention with the same answer
    adversaries: tuple[Adversary, ...] = ()
    texts: tuple[Shown, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps(known({**asdict(self), "verdict": self.verdict()}), indent=1, ensure_ascii=False)

    # -- the verdict --------------------------------------------------------------------------------

    def verdict(self) -> list[str]:
        """What the numbers say, in sentences; the last one answers the question."""
        said, signs = [], []
        if "permuted" in self.replaced:
            drop = self.replaced["permuted"]["f1 drop"]
            strong, weak = drop >= 0.05, drop < 0.02
            how = "depend" if strong else "hardly depend" if weak else "depend somewhat"
            said.append(
                f"With its attention weights shuffled among the words F1 falls by {100 * drop:.1f} points: answers "
                f"{how} on where attention looks."
            )
            signs.append(strong - weak)
        if "gradient of words" in self.agreement and self.agreement["gradient of words"].count:
            tau = self.agreement["gradient of words"].mean
            how = "agrees with" if tau >= 0.5 else "has little to do with" if tau < 0.25 else "agrees in part with"
            said.append(f"Attention {how} the words' importance by gradients (mean τ-b {tau:.2f}).")
            signs.append(int(tau >= 0.5) - int(tau < 0.25))
        if "influence" in self.entropy and self.entropy["influence"].count:
            spread = self.entropy["influence"].mean
            how = (
                "mixes many words"
                if spread >= 0.7
                else "belongs to a few words"
                if spread < 0.4
                else "mixes some words"
            )
            said.append(f"A hidden state {how} (entropy of influence {spread:.2f}, where 1 is all alike).")
            signs.append(int(spread < 0.4) - int(spread >= 0.7))
        if self.instance is not None:
            far = float(np.mean(np.array(self.instance.values) > 0.4))
            said.append(
                f"For {far:.0%} of the texts there is an attention that is very different (JSD above 0.4 of at most "
                "0.69) and gives the same answer."
            )
            signs.append(int(far < 0.2) - int(far > 0.5))
        if not signs:
            return [*said, "Too little is defined for this model to say whether its attention explains it."]
        total = sum(signs)
        if total >= 2 and min(signs) >= 0:
            last = "Its attention can be read as an explanation of its answers."
        elif total <= 0:
            last = "Its attention should not be read as an explanation of its answers."
        else:
            last = "Its attention can be read as an explanation with care only: not all tests agree."
        return [*said, last]


def known(value: Any) -> Any:
    """What JSON can hold: a number that is not defined is null."""
    if isinstance(value, dict):
        return {key: known(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [known(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
