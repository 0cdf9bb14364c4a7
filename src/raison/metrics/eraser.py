"""Does the rationale suffice, and can the model do without it? (ERASER)"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.errors import InputError
from raison.metrics.base import Asking, Kept, Metric, Subject, metric
from raison.metrics.curves import everything, only_first, parts_of, without_first

__all__ = ["Comprehensiveness", "Sufficiency"]

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)  # ERASER's bins


def check_shares(shares: tuple[float, ...]) -> None:
    if (
        not isinstance(shares, tuple)
        or not shares
        or not all(isinstance(s, (int, float)) and 0 < s <= 1 for s in shares)
    ):
        raise InputError(f"shares are numbers above 0 and at most 1, such as (0.1, 0.5), not {shares}.")


@metric("comprehensiveness")
@dataclass(frozen=True)
class Comprehensiveness(Metric):
    """How much probability the target loses when the rationale is removed.

    mean over q of p(x) − p(x without the best ⌈q·u⌉ units), or without the selected units where a rationale was
    selected (DeYoung et al. 2020). normalised_comprehensiveness = that / max(0, p(x) − p(∅)), each q clipped to
    0…1; 0 where removing everything changes nothing (Carton et al. 2020).
    """

    paper = "DeYoung et al. 2020"
    keys = ("comprehensiveness", "normalised_comprehensiveness")
    higher = True
    probable_span = (-1.0, 1.0)
    needs = frozenset({"score"})

    shares: tuple[float, ...] = SHARES  # of the units, for methods that only rank them

    def __post_init__(self) -> None:
        check_shares(self.shares)

    def ask(self, subject: Subject) -> Asking:
        counts = parts_of(subject, self.shares)
        said = yield Kept(np.concatenate([everything(subject), without_first(subject, counts)]))
        whole, nothing, rest = said.value[0], said.value[1], said.value[2:]
        room = max(0.0, whole - nothing)
        normal = np.clip((whole - rest) / room, 0, 1).mean() if room > 0 else 0.0
        return {"comprehensiveness": float((whole - rest).mean()), "normalised_comprehensiveness": float(normal)}


@metric("sufficiency")
@dataclass(frozen=True)
class Sufficiency(Metric):
    """How much probability the target loses when only the rationale is kept: less is better.

    mean over q of p(x) − p(the best ⌈q·u⌉ units), or p(the selected units) where a rationale was selected (DeYoung et
    al. 2020). normalised_sufficiency = (S(R) − S(∅)) / (1 − S(∅)) with S(R) = 1 − max(0, p(x) − p(R)), each q
    clipped to 0…1: more is better; 1 where nothing is enough already (Carton et al. 2020).
    """

    paper = "DeYoung et al. 2020"
    keys = ("sufficiency", "normalised_sufficiency")
    higher = False
    probable_span = (-1.0, 1.0)
    needs = frozenset({"score"})

    shares: tuple[float, ...] = SHARES  # of the units, for methods that only rank them

    def __post_init__(self) -> None:
        check_shares(self.shares)

    def ask(self, subject: Subject) -> Asking:
        counts = parts_of(subject, self.shares)
        said = yield Kept(np.concatenate([everything(subject), only_first(subject, counts)]))
        whole, nothing, alone = said.value[0], said.value[1], said.value[2:]
        room = max(0.0, whole - nothing)
        normal = np.clip(1 - np.maximum(0, whole - alone) / room, 0, 1).mean() if room > 0 else 1.0
        return {"sufficiency": float((whole - alone).mean()), "normalised_sufficiency": float(normal)}
