"""Methods that remove parts of the text and ask the model again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.methods.base import Answer, Batch, Method, method
from raison.models.base import Model, Question

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
        questions = []
        for encoding, target, units in zip(batch.encodings, batch.targets, batch.units, strict=True):
            chosen = np.ones((len(units) + 1, len(units)), bool)  # the last row keeps everything
            np.fill_diagonal(chosen, False)
            questions.append(Question(encoding, target, units.keep(chosen)))
        answers = []
        for scored in model.score(questions, removal=batch.removal):
            value = scored.value.sum(-1)
            cost = {"forwards": scored.forwards, "tokens": scored.tokens}
            answers.append(Answer(value[-1] - value[:-1], cost=cost))
        return answers
