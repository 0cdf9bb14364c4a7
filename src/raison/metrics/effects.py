"""Do the scores say what removal does? Single units, their sum, random sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.spec import whole
from raison.metrics.attention import kendall_tau
from raison.metrics.base import Asking, Kept, Metric, Subject, metric
from raison.metrics.curves import everything, only_first

__all__ = ["CompletenessGap", "Infidelity", "LeaveOneOutCorrelation", "Monotonicity"]

ROUNDING = 1e-11  # of values whose precision nobody knows


@metric("loo_correlation")
@dataclass(frozen=True)
class LeaveOneOutCorrelation(Metric):
    """Rank correlation of the scores with what removing single units does.

    Kendall's τ-b of s_u and f(x) − f(x without u), f = what was explained (Jain & Wallace 2019; P2). 0 where one of
    them is the same for all units; effects that the model's dtype can't tell apart are tied.
    """

    paper = "Jain & Wallace 2019"
    keys = ("loo_correlation",)
    higher = True
    span = (-1.0, 1.0)
    needs = frozenset({"score"})

    def ask(self, subject: Subject) -> Asking:
        size = len(subject.units)
        said = yield Kept(~np.eye(size + 1, size, dtype=bool), "value")  # the last row keeps all
        known = 0.0 if subject.model is None else subject.model.rounding
        step = (known or ROUNDING) / 10 * float(np.abs(said.value).max())
        effect = said.value[-1] - said.value[:-1]
        if step > 0:
            effect = np.round(effect / step)  # what only rounding tells apart is tied
        return {"loo_correlation": kendall_tau(subject.scores, effect)}


@metric("monotonicity")
@dataclass(frozen=True)
class Monotonicity(Metric):
    """How far more important units bring more, when units are added from the least important to the most.

    monotonicity = share of steps whose gain is at least that of the step before (after Nguyen & Martínez 2020);
    monotone_steps = share of steps at which the probability does not fall (Luss et al. 2021 ask for all of them). With
    one unit both are 1.
    """

    paper = "Nguyen & Martínez 2020; Luss et al. 2021"
    keys = ("monotonicity", "monotone_steps")
    higher = True
    span = (0.0, 1.0)
    needs = frozenset({"score"})

    def ask(self, subject: Subject) -> Asking:
        size = len(subject.units)
        added = ~only_first(subject, range(size, -1, -1))  # nothing, the last of the ranking, the last two, …, all
        said = yield Kept(added)
        if size == 1:
            return {"monotonicity": 1.0, "monotone_steps": 1.0}
        gains = np.diff(said.value)
        slack = 1e-12 * float(np.abs(said.value).max())  # equal gains may differ in the last bit
        return {
            "monotonicity": float((np.diff(gains) >= -slack).mean()),
            "monotone_steps": float((gains >= -slack).mean()),
        }


@metric("infidelity")
@dataclass(frozen=True)
class Infidelity(Metric):
    """How badly the scores of removed units foretell what removing them does, over random sets: less is better.

    infidelity = min_{β ≥ 0} E_S (β Σ_{u∈S} s_u − Δ_S)² / E_S Δ_S², Δ_S = f(x) − f(x without S), each unit in S with
    probability 1/2 (Yeh et al. 2019, with their optimal scaling β; divided by what zero scores would miss, so 1 = says
    nothing, 0 = exact; without β ≥ 0 reversed scores would be exact too). raw_infidelity is theirs, with β = 1 and
    undivided. For a model that never changes infidelity is 0.
    """

    paper = "Yeh et al. 2019"
    keys = ("infidelity", "raw_infidelity")
    higher = False
    span = (0.0, np.inf)
    needs = frozenset({"score"})

    samples: int = 64  # random sets

    def __post_init__(self) -> None:
        whole("samples", self.samples, 1)

    def ask(self, subject: Subject) -> Asking:
        removed = subject.generator("infidelity").random((self.samples, len(subject.units))) < 0.5
        said = yield Kept(np.concatenate([everything(subject)[:1], ~removed]), "value")
        effect = said.value[0] - said.value[1:]
        foretold = removed @ subject.scores
        size = float((effect**2).mean())
        power = float((foretold**2).mean())
        scaled = foretold * max(0.0, float((foretold * effect).mean()) / power) if power > 0 else foretold
        rest = float(((scaled - effect) ** 2).mean())
        return {
            "infidelity": rest / size if size > 0 else 0.0,
            "raw_infidelity": float(((foretold - effect) ** 2).mean()),
        }


@metric("completeness_gap")
@dataclass(frozen=True)
class CompletenessGap(Metric):
    """How far the scores are from adding up to what the whole text brings: less is better.

    |Σ s_u − Δ| / (|Σ s_u| + |Δ|), Δ = f(x) − f(∅), 0 where both are 0. Methods with a baseline of their own
    (integrated_gradients) tell their gap to that baseline in diagnostics["completeness_gap"]; this one compares all
    methods with the same absence.
    """

    paper = "Sundararajan et al. 2017"
    keys = ("completeness_gap",)
    higher = False
    span = (0.0, 1.0)
    needs = frozenset({"score"})

    def ask(self, subject: Subject) -> Asking:
        said = yield Kept(everything(subject), "value")
        change, total = said.value[0] - said.value[1], float(subject.scores.sum())
        size = abs(total) + abs(change)
        return {"completeness_gap": abs(total - change) / size if size > 0 else 0.0}
