"""What a rationale costs: the smallest, greedy on masked texts, greedy on what is kept, refined (P0, Table 6)."""

from __future__ import annotations

from collections.abc import Mapping

from raison.core.evaluation import Column, Evaluation
from raison.studies.reproduce.experiment import Trial, experiment, found
from raison.studies.reproduce.experiments.agreement import usable_examples
from raison.studies.reproduce.experiments.searched import searched, setting

__all__ = ["cost"]

COLUMNS = (
    Column("cpu_seconds", "of the process, for one example alone", False),
    Column("token_forwards", "tokens pushed through the blocks, for one example", False),
    Column("length", "tokens of the rationale, the previous one counted", False),
    Column("proved", "no smaller rationale exists, and the search knows it", True),
)


@experiment("cost")
def cost(trial: Trial) -> Evaluation:
    """CPU seconds and token-forwards of each search, one example of the agreement templates at a time.

    The setting `removal` names for a title what absence means in its search (mask: the whole text runs for every set);
    the others use the model's default. The check of the answer, which every search makes, is part of the cost.
    """
    usable, told = usable_examples(trial)
    removal: Mapping[str, str] = setting(trial, "removal", {})
    numbers = {}
    searched(trial, "warming up", "greedy(largest=1)", [usable[0].aim])  # what is made once is nobody's cost
    for title, spec in trial.methods.items():
        made, spent = searched(trial, title, spec, [each.aim for each in usable], removal=removal.get(title), group=1)
        numbers[title] = [
            {
                "cpu_seconds": one["cpu_seconds"],
                "token_forwards": one["tokens"],
                "length": float(len(rationale.order)),
                "proved": float(rationale.optimal),
            }
            for rationale, one in zip(made, spent, strict=True)
        ]
    return found(trial, COLUMNS, numbers, data="analogies", about=[told])
