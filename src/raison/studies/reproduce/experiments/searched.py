"""Rationales of many targets by one search: what every experiment of P0 begins with."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raison.api import build_search
from raison.core import units as grouping
from raison.core.errors import InputError
from raison.core.records import Encoding, Target
from raison.methods.base import Answer, Batch, Method, check_needs
from raison.models.protocol import Model
from raison.models.runner.meter import metered
from raison.rationales.by_order import ByOrder, scores_of
from raison.rationales.greedy import Greedy
from raison.rationales.search import Search
from raison.rationales.sufficient import Penalty
from raison.studies.reproduce.experiment import Trial

__all__ = ["Aim", "Rationale", "check_task", "searched", "setting", "summed"]

GROUP = 16  # targets at a time: they fill batches, and their prefixes fit into the memory
LIGHT = 1e-9  # of a token beside its log-probability: a search that goes on however much it has


@dataclass(frozen=True)
class Aim:
    """A target and the text that it belongs to."""

    encoding: Encoding
    target: Target

    @property
    def given(self) -> list[int]:
        """Positions of the context that can't be removed: for a written token the one before it."""
        scope = self.target.scope(len(self.encoding))
        return [int(t) for t in np.flatnonzero(self.target.given(self.encoding) & scope)]


@dataclass(frozen=True)
class Rationale:
    """What a search found for one target, as positions on the axis of its encoding."""

    order: tuple[int, ...]  # what can't be removed first, then as it joined
    ranking: tuple[int, ...]  # likewise, but going on behind the rationale where the search knows how
    reached: bool  # it is enough, and not just the whole context for want of anything smaller
    optimal: bool  # no smaller set is enough

    @property
    def kept(self) -> frozenset[int]:
        return frozenset(self.order)


@dataclass(frozen=True)
class Known(Method):
    """Scores that are there already, one answer for each text of the batch."""

    answers: tuple[Answer, ...] = ()

    name = "known"
    axis = "unit"

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return list(self.answers)


def setting(trial: Trial, name: str, default: Any) -> Any:
    """A setting of the run, of the same kind as its default."""
    value = trial.run.settings.get(name, default)
    if not isinstance(value, type(default)):
        raise InputError(f"The setting {name!r} of the run {trial.run.name!r} is like {default!r}, not {value!r}.")
    return value


def check_task(trial: Trial, task: str, kind: str) -> None:
    if trial.model.task != task:
        raise InputError(f"{trial.run.name} needs {kind}, and {trial.model.name} is none: pass another model.")


def searched(
    trial: Trial,
    title: str,
    spec: str,
    aims: Sequence[Aim],
    *,
    removal: str | None = None,
    first: int = 0,
    group: int = GROUP,
) -> tuple[list[Rationale], list[dict[str, float]]]:
    """A rationale for each target, and what each cost: CPU seconds and tokens pushed through the blocks.

    Targets of one group are answered together, so what they cost is their mean. Units are tokens. With `first` greedy
    goes on behind its rationale until its ranking has that many tokens; the order of a method is known as a whole.
    """
    search = build_search(spec)
    check_needs(search, trial.model)
    found: list[Rationale] = []
    costs: list[dict[str, float]] = []
    for start in range(0, len(aims), group):
        trial.step(f"{trial.run.name}, {title}: {start} of {len(aims)}")
        part = aims[start : start + group]
        clock = time.process_time()
        with metered() as meter:
            found += of_group(trial, search, part, removal, first)
        spent = {"cpu_seconds": time.process_time() - clock, "tokens": float(meter.tokens)}
        costs += [{name: value / len(part) for name, value in spent.items()}] * len(part)
    return found, costs


def summed(spent: Sequence[Mapping[str, float]], texts: int) -> dict[str, float]:
    """What all targets of so many texts cost."""
    return {name: float(sum(one[name] for one in spent)) for name in ("cpu_seconds", "tokens")} | {"texts": texts}


def of_group(trial: Trial, search: Search, aims: Sequence[Aim], removal: str | None, first: int) -> list[Rationale]:
    batch = batch_of(trial, aims, removal)
    ranked: list[np.ndarray | None] = [None] * len(aims)
    if isinstance(search, ByOrder):
        check_needs(search.built, trial.model)
        scored = scores_of(search.built, trial.model, batch)
        answers = tuple(Answer(scores, cost={"tokens": tokens}) for scores, tokens in scored)
        ranked = [np.argsort(-scores, kind="stable") for scores, _ in scored]
        search = replace(search, method=Known(answers))
    made = search(trial.model, batch)
    short = [index for index, aim in enumerate(aims) if len(order_of(made[index])) + len(aim.given) < first]
    if isinstance(search, Greedy) and short:
        for index, order in zip(short, carried_on(trial, [aims[i] for i in short], removal, first), strict=True):
            ranked[index] = order
    return [rationale(aim, batch.units[index].of, made[index], ranked[index]) for index, aim in enumerate(aims)]


def batch_of(trial: Trial, aims: Sequence[Aim], removal: str | None) -> Batch:
    encodings, targets = [aim.encoding for aim in aims], [aim.target for aim in aims]
    units = [grouping.group(aim.encoding, "token", aim.target.free(aim.encoding)) for aim in aims]
    return Batch(encodings, targets, units, removal, trial.seed)


def order_of(answer: Answer) -> np.ndarray:
    assert answer.order is not None  # a search gives one
    return answer.order


def carried_on(trial: Trial, aims: Sequence[Aim], removal: str | None, first: int) -> list[np.ndarray]:
    """Units in the order in which greedy adds them, whether or not there are enough already."""
    found: list[np.ndarray] = [np.zeros(0, np.int64)] * len(aims)
    wanted = [max(0, first - len(aim.given)) for aim in aims]
    for most in sorted(set(wanted)):
        some = [index for index, each in enumerate(wanted) if each == most]
        search = Greedy(sufficient=Penalty(weight=LIGHT).spec(), largest=most)
        answers = search(trial.model, batch_of(trial, [aims[index] for index in some], removal))
        for index, answer in zip(some, answers, strict=True):
            found[index] = np.array([unit for step in answer.steps for unit in step.added], dtype=np.int64)
    return found


def rationale(aim: Aim, of: np.ndarray, answer: Answer, ranked: np.ndarray | None) -> Rationale:
    """Units are single tokens, so that their order is one of positions."""
    place = {int(unit): int(t) for t, unit in enumerate(of) if unit >= 0}
    order = order_of(answer)
    certificate = answer.certificate
    if certificate is None:
        raise ValueError("only a search gives a rationale")
    whole = certificate.size == len(place)
    reached = certificate.sufficient and not (whole and certificate.status != "complete")
    return Rationale(
        order=(*aim.given, *(place[int(u)] for u in order)),
        ranking=(*aim.given, *(place[int(u)] for u in (order if ranked is None else ranked))),
        reached=bool(reached),
        optimal=certificate.optimal,
    )
