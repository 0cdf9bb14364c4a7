"""Experiment: what the search of a rationale costs in seconds and token-forwards (P0, Table 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from raison.core.evaluation import Evaluation
from raison.studies.reproduce.experiment import (
    ResultRow,
    Trial,
    evaluation_of_rows,
    experiment,
    experiment_column,
    setting_of_trial,
)
from raison.studies.reproduce.experiments.long_range_agreement import usable_agreements
from raison.studies.reproduce.target_rationales import find_rationales_of_targets

__all__ = ["CostRow", "search_cost"]


@dataclass(frozen=True)
class CostRow(ResultRow):
    """The numbers of one example."""

    cpu_seconds: float = experiment_column("of the process, for one example alone", higher=False)
    token_forwards: float = experiment_column(
        "tokens pushed through the blocks, for one example", higher=False
    )
    length: float = experiment_column(
        "tokens of the rationale, the previous one counted", higher=False
    )
    proved: float = experiment_column(
        "no smaller rationale exists, and the search knows it", higher=True
    )


@experiment("cost")
def search_cost(trial: Trial) -> Evaluation:
    """CPU seconds and token-forwards of each search, one example of the agreement templates at a time.

    The setting `removal` names for a title what absence means in its search (mask: the whole text runs for every set);
    the others use the model's default. The check of the answer, which every search makes, is part of the cost.
    """
    usable = usable_agreements(trial)
    no_removals: dict[str, str] = {}
    removals: Mapping[str, str] = setting_of_trial(trial, "removal", no_removals)
    find_rationales_of_targets(
        trial, "warming up", "greedy(largest=1)", usable.targets[:1]
    )  # what is made once is nobody's cost

    rows = {}
    for title, spec in trial.methods.items():
        found = find_rationales_of_targets(
            trial, title, spec, usable.targets, removal=removals.get(title), group=1
        )
        rows_of_method = []
        for rationale, cost in zip(found.rationales, found.costs, strict=True):
            rows_of_method.append(
                CostRow(
                    cpu_seconds=cost.cpu_seconds,
                    token_forwards=cost.tokens,
                    length=float(len(rationale.order)),
                    proved=float(rationale.optimal),
                )
            )
        rows[title] = rows_of_method
    return evaluation_of_rows(
        trial, CostRow.columns(), rows, data="analogies", notes=[usable.sentence()]
    )
