"""Rationales of many targets by one search, and every token of a written target as a target: where P0 begins."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.api import build_search
from raison.core import units as grouping
from raison.core.records import Encoding, Target
from raison.methods.base import Answer, Batch, Method, check_needs_of_method
from raison.models.protocol import Model, Question
from raison.models.runner.meter import metered
from raison.rationales.by_order import ByOrder, unit_scores_and_tokens
from raison.rationales.greedy import Greedy
from raison.rationales.search import Search
from raison.rationales.sufficient import Penalty
from raison.studies.reproduce.experiment import Trial

__all__ = [
    "SearchCost",
    "SearchedTargets",
    "TargetInText",
    "TargetRationale",
    "batch_of_targets",
    "find_rationales_of_targets",
    "target_is_own_token",
    "token_targets",
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
        positions = []
        for position in np.flatnonzero(self.target.given(self.encoding) & scope):
            positions.append(int(position))
        return positions


@dataclass(frozen=True)
class TargetRationale:
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

    rationales: list[TargetRationale]
    costs: list[SearchCost]

    def total_cost(self, texts: int) -> dict[str, float]:
        """What all targets of so many texts cost, as an evaluation has it."""
        return {
            "cpu_seconds": float(sum(cost.cpu_seconds for cost in self.costs)),
            "tokens": float(sum(cost.tokens for cost in self.costs)),
            "texts": texts,
        }

    def by_text(self, counts: Sequence[int]) -> list[list[TargetRationale]]:
        """The rationales of each text, where the texts have so many targets each."""
        remaining = iter(self.rationales)
        return [take_rationales(remaining, count) for count in counts]


def take_rationales(rationales: Iterator[TargetRationale], count: int) -> list[TargetRationale]:
    return [next(rationales) for _ in range(count)]


@dataclass(frozen=True)
class KnownScores(Method):
    """Scores that are there already, one answer for each text of the batch."""

    answers: tuple[Answer, ...] = ()

    name = "known"
    axis = "unit"

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return list(self.answers)


def find_rationales_of_targets(
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
    check_needs_of_method(search, trial.model)
    rationales: list[TargetRationale] = []
    costs: list[SearchCost] = []
    for start in range(0, len(targets), group):
        trial.step(f"{trial.run.name}, {title}: {start} of {len(targets)}")
        part = targets[start : start + group]
        clock = time.process_time()
        with metered() as meter:
            rationales += rationales_of_target_group(
                trial, search, part, removal=removal, ranked=ranked
            )
        seconds = time.process_time() - clock
        costs += [SearchCost(seconds / len(part), float(meter.tokens) / len(part))] * len(part)
    return SearchedTargets(rationales, costs)


def rationales_of_target_group(
    trial: Trial,
    search: Search,
    targets: Sequence[TargetInText],
    *,
    removal: str | None,
    ranked: int,
) -> list[TargetRationale]:
    """The rationales of targets that are answered together."""
    batch = batch_of_targets(trial, targets, removal)
    rankings: list[np.ndarray | None] = [None] * len(targets)
    if isinstance(search, ByOrder):
        check_needs_of_method(search.built, trial.model)
        scored = unit_scores_and_tokens(search.built, trial.model, batch)
        known = []
        for number, (scores, tokens) in enumerate(scored):
            known.append(Answer(scores, cost={"tokens": tokens}))
            rankings[number] = np.argsort(-scores, kind="stable")
        search = replace(search, method=KnownScores(tuple(known)))

    answers = search(trial.model, batch)
    if isinstance(search, Greedy):
        lengths = []
        for answer, each in zip(answers, targets, strict=True):
            lengths.append(len(order_of_rationale(answer)) + len(each.given))
        short = [index for index, length in enumerate(lengths) if length < ranked]
        short_targets = []
        for index in short:
            short_targets.append(targets[index])
        longer = greedy_rankings_of_targets(trial, short_targets, removal=removal, ranked=ranked)
        for index, of_greedy in zip(short, longer, strict=True):
            rankings[index] = of_greedy

    found = []
    for target, units, answer, ranking in zip(targets, batch.units, answers, rankings, strict=True):
        found.append(target_rationale_in_positions(target, units.of, answer, ranking))
    return found


def batch_of_targets(trial: Trial, targets: Sequence[TargetInText], removal: str | None) -> Batch:
    """The targets as a method is asked about them, token by token."""
    units = []
    for each in targets:
        free = each.target.free(each.encoding)
        units.append(grouping.group_tokens(each.encoding, "token", free))
    return Batch(
        encodings=[each.encoding for each in targets],
        targets=[each.target for each in targets],
        units=units,
        removal=removal,
        seed=trial.seed,
    )


def order_of_rationale(answer: Answer) -> np.ndarray:
    """Units in the order in which they joined."""
    if answer.order is None:
        raise ValueError("only a search gives an order")
    return answer.order


def greedy_rankings_of_targets(
    trial: Trial, targets: Sequence[TargetInText], *, removal: str | None, ranked: int
) -> list[np.ndarray]:
    """Units in the order in which greedy adds them, whether or not there are enough already."""
    rankings: list[np.ndarray] = [np.zeros(0, np.int64)] * len(targets)
    wanted = [max(0, ranked - len(each.given)) for each in targets]
    for size in sorted(set(wanted)):
        chosen = [index for index, each in enumerate(wanted) if each == size]
        search = Greedy(sufficient=Penalty(weight=LIGHT).spec(), largest=size)
        targets_of_size = []
        for index in chosen:
            targets_of_size.append(targets[index])
        answers = search(trial.model, batch_of_targets(trial, targets_of_size, removal))
        for index, answer in zip(chosen, answers, strict=True):
            added: list[int] = []
            for step in answer.steps:
                added += step.added
            rankings[index] = np.array(added, dtype=np.int64)
    return rankings


def target_rationale_in_positions(
    target: TargetInText, unit_of_token: np.ndarray, answer: Answer, ranking: np.ndarray | None
) -> TargetRationale:
    """The answer of a search in positions; units are single tokens, so that their order is one of positions."""
    certificate = answer.certificate
    if certificate is None:
        raise ValueError("only a search gives a rationale")
    position_of = {}
    for position, unit in enumerate(unit_of_token):
        if unit >= 0:
            position_of[int(unit)] = position
    order = [position_of[int(unit)] for unit in order_of_rationale(answer)]
    if ranking is None:
        longer = order
    else:
        longer = [position_of[int(unit)] for unit in ranking]
    is_whole_context = certificate.size == len(position_of)
    gave_up = is_whole_context and certificate.status != "complete"
    return TargetRationale(
        order=(*target.given, *order),
        ranking=(*target.given, *longer),
        reached=bool(certificate.sufficient and not gave_up),
        optimal=certificate.optimal,
    )


def target_is_own_token(model: Model, encoding: Encoding, target: Target) -> np.ndarray:
    """[m] whether each token of a target is the model's first choice after the text and the target's tokens before."""
    everything = np.ones((1, len(encoding)), bool)
    (scored,) = model.score([Question(encoding, target, everything)])
    return np.asarray(scored.margin[0] > 0)


def token_targets(target: Target, encoding: Encoding) -> list[Target]:
    """Every token of a written target as a target of its own."""
    targets = []
    for token, position in zip(target.ids, target.positions, strict=True):
        text = encoding.tokens[position]
        targets.append(Target("token", (token,), (position,), text, target.output))
    return targets
