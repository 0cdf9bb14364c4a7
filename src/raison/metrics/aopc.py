"""What becomes of the target while units go in the order of their importance: P4's AOPC and LOdds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.spec import whole
from raison.metrics.base import Asking, Kept, Metric, Subject, metric
from raison.metrics.curves import everything, without_first

__all__ = ["AOPC", "LogOdds"]


def grid(size: int, steps: int) -> np.ndarray:
    """[steps] how many units are removed: P4's shares 1/9 … 1, rounded."""
    return np.rint(np.linspace(0, 1, steps + 1)[1:] * size).astype(int)


@metric("aopc")
@dataclass(frozen=True)
class AOPC(Metric):
    """Mean loss of the target's probability while the most important units are removed, a ninth at a time.

    mean over k of p(x) − p(x without the best k units), k = 11.1 %, …, 100 % of the units (P4, from Nguyen 2018). P4
    counts all tokens, special ones included, and explains the gold label: evaluate with `target=gold` and
    `units=token` for its numbers. At 100 % it is the same for all methods.
    """

    paper = "P4 section 4; Nguyen 2018"
    keys = ("aopc", "aopc_curve")
    higher = True
    probable_span = (-1.0, 1.0)
    needs = frozenset({"score"})

    steps: int = 9

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1)

    def ask(self, subject: Subject) -> Asking:
        counts = grid(len(subject.units), self.steps)
        said = yield Kept(np.concatenate([everything(subject)[:1], without_first(subject, counts)]))
        drops = said.value[0] - said.value[1:]
        return {"aopc": float(drops.mean()), "aopc_curve": drops}


@metric("lodds")
@dataclass(frozen=True)
class LogOdds(Metric):
    """Mean logarithm of the share of the target's probability that is left while units are removed: less is better.

    mean over k of ln p(x without the best k units) / p(x), with the k of `aopc` (P4, from Shrikumar et al. 2017).
    """

    paper = "P4 section 4; Shrikumar et al. 2017"
    keys = ("lodds", "lodds_curve")
    higher = False
    needs = frozenset({"score", "probability"})

    steps: int = 9

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1)

    def ask(self, subject: Subject) -> Asking:
        counts = grid(len(subject.units), self.steps)
        said = yield Kept(np.concatenate([everything(subject)[:1], without_first(subject, counts)]))
        ratios = said.log[1:] - said.log[0]
        return {"lodds": float(ratios.mean()), "lodds_curve": ratios}
