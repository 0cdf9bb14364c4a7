"""Rationales of many targets by one search: what every experiment of P0 begins with."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.api import build_search
from raison.core import units as grouping
from raison.core.records import Encoding, Target
from raison.methods.base import Answer, Batch, Method, check_needs
from raison.models.protocol import Model
from raison.models.runner.meter import metered
from raison.rationales.by_order import ByOrder, unit_scores_and_tokens
from raison.rationales.greedy import Greedy
from raison.rationales.search import Search
from raison.rationales.sufficient import Penalty
from raison.studies.reproduce.experiment import Trial

__all__ = [
    "Rationale",
    "SearchCost",
    "SearchedTargets",
    "TargetInText",
    "batch_of",
    "find_rationales",
]

GROUP = 16  # targets at a time: they fill batches, and their prefixes fit into the memory
LIGHT = 1e-9  # of a token beside its log-probability: a search that goes on however much it has


@dataclass(frozen=True)
class TargetInText:
    """A target and the text that it belongs to."""

    encoding: Encoding
    target: Target

    @property
    def given(self) -> list[int]:
        """Positions of the context that can't be removed: for a written token the one before it."""
        scope = self.target.scope(len(self.encoding))
        return [
            int(position) for position in np.flatnonzero(self.target.given(self.encoding) & scope)
        ]


@dataclass(frozen=True)
class Rationale:
    """What a search found for one target, as positions on the axis of its encoding."""

    order: tuple[int, ...]  # what can't be removed first, then as it joined
    ranking: tuple[
        int, ...
    ]  # likewise, but going on behind the rationale where the search knows how
    reached: bool  # it is enough, and not just the whole context for want of anything smaller
    optimal: bool  # no smaller set is enough

    @property
    def kept(self) -> frozenset[int]:
        return frozenset(self.order)


@dataclass(frozen=True)
class SearchCost:
    """What the rationale of one target cost; targets that are answered together share it evenly."""

    cpu_seconds: float
    tokens: float  # pushed through the blocks


@dataclass(frozen=True)
class SearchedTargets:
    """The rationales of several targets, and what each cost."""

    rationales: list[Rationale]
    costs: list[SearchCost]

    def total_cost(self, texts: int) -> dict[str, float]:
        """What all targets of so many texts cost, as an evaluation has it."""
        return {
            "cpu_seconds": float(sum(cost.cpu_seconds for cost in self.costs)),
            "tokens": float(sum(cost.tokens for cost in self.costs)),
            "texts": texts,
        }

    def by_text(self, counts: Sequence[int]) -> list[list[Rationale]]:
        """The rationales of each text, where the texts have so many targets each."""
        remaining = iter(self.rationales)
        return [take(remaining, count) for count in counts]


def take(rationales: Iterator[Rationale], count: int) -> list[Rationale]:
    return [next(rationales) for _ in range(count)]


@dataclass(frozen=True)
class KnownScores(Method):
    """Scores that are there already, one answer for each text of the batch."""

    answers: tuple[Answer, ...] = ()

    name = "known"
    axis = "unit"

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return list(self.answers)


def find_rationales(
    trial: Trial,
    title: str,
    spec: str,
    targets: Sequence[TargetInText],
    *,
    removal: str | None = None,
    ranked: int = 0,
    group: int = GROUP,
) -> SearchedTargets:
    """A rationale for each target, and what each cost.

    Targets of one group are answered together, so what they cost is their mean. Units are tokens. Greedy goes on
    behind its rationale until its ranking has `ranked` tokens; the order of a method is known as a whole.
    """
    search = build_search(spec)
    check_needs(search, trial.model)
    rationales: list[Rationale] = []
    costs: list[SearchCost] = []
    for start in range(0, len(targets), group):
        trial.step(f"{trial.run.name}, {title}: {start} of {len(targets)}")
        part = targets[start : start + group]
        clock = time.process_time()
        with metered() as meter:
            rationales += rationales_of_group(trial, search, part, removal=removal, ranked=ranked)
        seconds = time.process_time() - clock
        costs += [SearchCost(seconds / len(part), float(meter.tokens) / len(part))] * len(part)
    return SearchedTargets(rationales, costs)


def rationales_of_group(
    trial: Trial,
    search: Search,
    targets: Sequence[TargetInText],
    *,
    removal: str | None,
    ranked: int,
) -> list[Rationale]:
    """The rationales of targets that are answered together."""
    batch = batch_of(trial, targets, removal)
    rankings: list[np.ndarray | None] = [None] * len(targets)
    if isinstance(search, ByOrder):
        check_needs(search.built, trial.model)
        scored = unit_scores_and_tokens(search.built, trial.model, batch)
        known = tuple(Answer(scores, cost={"tokens": tokens}) for scores, tokens in scored)
        rankings = [np.argsort(-scores, kind="stable") for scores, _ in scored]
        search = replace(search, method=KnownScores(known))

    answers = search(trial.model, batch)
    if isinstance(search, Greedy):
        lengths = [
            len(order_of(answer)) + len(each.given)
            for answer, each in zip(answers, targets, strict=True)
        ]
        short = [index for index, length in enumerate(lengths) if length < ranked]
        longer = greedy_rankings(
            trial, [targets[index] for index in short], removal=removal, ranked=ranked
        )
        for index, of_greedy in zip(short, longer, strict=True):
            rankings[index] = of_greedy

    found = []
    for target, units, answer, ranking in zip(targets, batch.units, answers, rankings, strict=True):
        found.append(rationale_of(target, units.of, answer, ranking))
    return found


def batch_of(trial: Trial, targets: Sequence[TargetInText], removal: str | None) -> Batch:
    """The targets as a method is asked about them, token by token."""
    units = [
        grouping.group_tokens(each.encoding, "token", each.target.free(each.encoding))
        for each in targets
    ]
    return Batch(
        encodings=[each.encoding for each in targets],
        targets=[each.target for each in targets],
        units=units,
        removal=removal,
        seed=trial.seed,
    )


def order_of(answer: Answer) -> np.ndarray:
    """Units in the order in which they joined."""
    if answer.order is None:
        raise ValueError("only a search gives an order")
    return answer.order


def greedy_rankings(
    trial: Trial, targets: Sequence[TargetInText], *, removal: str | None, ranked: int
) -> list[np.ndarray]:
    """Units in the order in which greedy adds them, whether or not there are enough already."""
    rankings: list[np.ndarray] = [np.zeros(0, np.int64)] * len(targets)
    wanted = [max(0, ranked - len(each.given)) for each in targets]
    for size in sorted(set(wanted)):
        chosen = [index for index, each in enumerate(wanted) if each == size]
        search = Greedy(sufficient=Penalty(weight=LIGHT).spec(), largest=size)
        answers = search(
            trial.model, batch_of(trial, [targets[index] for index in chosen], removal)
        )
        for index, answer in zip(chosen, answers, strict=True):
            added: list[int] = []
            for step in answer.steps:
                added += step.added
            rankings[index] = np.array(added, dtype=np.int64)
    return rankings


def rationale_of(
    target: TargetInText, unit_of_token: np.ndarray, answer: Answer, ranking: np.ndarray | None
) -> Rationale:
    """The answer of a search in positions; units are single tokens, so that their order is one of positions."""
    certificate = answer.certificate
    if certificate is None:
        raise ValueError("only a search gives a rationale")
    position_of = {int(unit): position for position, unit in enumerate(unit_of_token) if unit >= 0}
    order = [position_of[int(unit)] for unit in order_of(answer)]
    longer = order if ranking is None else [position_of[int(unit)] for unit in ranking]
    is_whole_context = certificate.size == len(position_of)
    gave_up = is_whole_context and certificate.status != "complete"
    return Rationale(
        order=(*target.given, *order),
        ranking=(*target.given, *longer),
        reached=bool(certificate.sufficient and not gave_up),
        optimal=certificate.optimal,
    )
