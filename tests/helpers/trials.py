"""Runs of suites as experiments get them, and rationales without a search."""

from __future__ import annotations

from raison.studies.reproduce.experiment import Trial
from raison.studies.reproduce.suite import SuiteRun
from raison.studies.reproduce.target_rationales import TargetRationale

METHODS = {
    "greedy": "greedy",
    "refined": "refined",
    "all attentions": "by_order(method=attention_mean)",
}


def trial_of(model, methods=METHODS, count=8, data="", **settings) -> Trial:
    return Trial(model, methods, SuiteRun("a run", "tiny", data, settings=settings), count)


def found_in(order, reached=True, optimal=False, ranking=None) -> TargetRationale:
    return TargetRationale(tuple(order), tuple(ranking or order), reached, optimal)
