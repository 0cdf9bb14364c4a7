"""Leave one out: units removed one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.methods.base import Answer, Batch, Method, method
from raison.methods.kept_sets import evaluate_sets
from raison.models.protocol import Model

__all__ = ["LeaveOneOut"]


@method("leave_one_out")
@dataclass(frozen=True)
class LeaveOneOut(Method):
    """How much the value drops when one unit is removed.

    score_u = f(x) − f(x without u), signed (Li et al. 2016). Answered on units: the score of a word is not
    the sum over its tokens.
    """

    paper = "Li et al. 2016"
    axis = "unit"
    needs = frozenset({"score"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        # one row for each unit that goes; the last row keeps all
        sets = []
        for units in batch.units:
            removed = np.eye(len(units) + 1, len(units), dtype=bool)
            sets.append(~removed)

        answers = []
        for asked in evaluate_sets(model, batch, sets):
            whole = asked.value[-1]
            scores = whole - asked.value[:-1]
            facts = {"value": whole, "evaluations": asked.evaluations}
            answers.append(Answer(scores, diagnostics=facts, cost=asked.cost))
        return answers
