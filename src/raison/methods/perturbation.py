"""Methods that remove parts of the text and ask the model again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.errors import InputError
from raison.core.records import Units
from raison.core.spec import whole
from raison.methods.base import Answer, Batch, Method, method
from raison.models.protocol import Model, Question
from raison.models.runner.score_cache import Memory

__all__ = ["Asked", "LeaveOneOut", "Occlusion", "ask"]


@dataclass
class Asked:
    """What one target is worth when only some units are kept."""

    value: np.ndarray  # [n] summed over the target's tokens
    evaluations: int  # different sets that were run
    cost: dict[str, int]


def ask(model: Model, batch: Batch, chosen: Sequence[np.ndarray]) -> list[Asked]:
    """Values of every target under its unit keep-masks [n u], all asked together; equal sets are run once.

    Causal models compute a prefix that several sets have in common once, where there are enough of them. Each question
    is looked at by itself, so that neighbours in the batch don't change the way its answer is found.
    """
    everything = zip(batch.encodings, batch.targets, batch.units, chosen, strict=True)
    questions = [Question(encoding, target, units.keep(keep)) for encoding, target, units, keep in everything]
    asked: list[Asked | None] = [None] * len(questions)
    able = model.shares_prefixes and (batch.removal or model.removals[0]) == "delete"
    shared = [able and shares(question) for question in questions]
    for sharing in (False, True):
        members = [index for index, answer in enumerate(shared) if answer == sharing]
        if not members:
            continue
        memory = Memory(limit=0) if sharing else None
        answers = model.score([questions[i] for i in members], removal=batch.removal, memory=memory)
        for index, scored in zip(members, answers, strict=True):
            cost = {"forwards": scored.forwards, "tokens": scored.tokens}
            asked[index] = Asked(scored.value.sum(-1), scored.forwards, cost)
    return asked  # type: ignore[return-value]


WORTH = 0.75  # new nodes per token: up to here a trie is faster, though its nodes are dearer than tokens (SmolLM2)


def shares(question: Question) -> bool:
    """Whether the sets of a question have enough of their beginnings in common."""
    encoding, target = question.encoding, question.target
    seen = (question.keep | target.given(encoding)) & target.inputs(len(encoding))
    seen = np.unique(seen, axis=0)  # [n t] in the order of a dictionary: a row shares most with the one before
    first = (seen[1:] != seen[:-1]).argmax(1)  # where it parts from that one
    if encoding.segments[0] == "source":  # what a decoder computed is of use for the same source only
        first[first < (encoding.segment == 0).sum()] = 0
    fresh = (seen[1:] & (np.arange(len(encoding)) >= first[:, None])).sum() + seen[0].sum()
    return bool(fresh <= WORTH * seen.sum())


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
        chosen = [~np.eye(len(units) + 1, len(units), dtype=bool) for units in batch.units]  # the last row keeps all
        answers = []
        for asked in ask(model, batch, chosen):
            facts = {"value": asked.value[-1], "evaluations": asked.evaluations}
            answers.append(Answer(asked.value[-1] - asked.value[:-1], diagnostics=facts, cost=asked.cost))
        return answers


@method("occlusion")
@dataclass(frozen=True)
class Occlusion(Method):
    """How much the value drops on average when a window of neighbouring units is removed.

    score_u = mean over windows W ∋ u of f(x) − f(x without W) (Zeiler & Fergus 2014, with units for pixels and removal
    for the grey square). Windows begin at every `stride`-th unit and at as many places before the first, and are
    clipped at both ends of a text (one longer than the text is as long as it); so with stride 1 every unit is covered
    by `window` of them, and window 1 is leave_one_out. A window does not reach from one text of a pair into the other.
    """

    window: int = 3  # units removed together
    stride: int = 1  # units from one window to the next

    paper = "Zeiler & Fergus 2014"
    axis = "unit"
    needs = frozenset({"score"})

    def __post_init__(self) -> None:
        whole("window", self.window, 1)
        whole("stride", self.stride, 1)
        if self.stride > self.window:
            raise InputError(
                f"A stride of {self.stride} leaves units between windows of {self.window} out: "
                f"use a stride of at most {self.window}."
            )

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        covers = [self.windows(units) for units in batch.units]
        chosen = [np.concatenate([~cover, np.ones((1, cover.shape[1]), bool)]) for cover in covers]
        answers = []
        for cover, asked in zip(covers, ask(model, batch, chosen), strict=True):
            drop = asked.value[-1] - asked.value[:-1]  # [n]
            facts = {"value": asked.value[-1], "evaluations": asked.evaluations, "windows": len(cover)}
            answers.append(Answer(drop @ cover / np.maximum(1, cover.sum(0)), diagnostics=facts, cost=asked.cost))
        return answers

    def windows(self, units: Units) -> np.ndarray:
        """[n u] which units each window covers."""
        segment = np.array([span[0] for span in units.spans], dtype=np.int64)
        found = [np.zeros((0, len(units)), bool)]
        for number in np.unique(segment):
            inside = np.flatnonzero(segment == number)
            window = min(self.window, len(inside))
            before = (window - 1) // self.stride * self.stride  # the first window that reaches the first unit
            starts = np.arange(-before, len(inside), self.stride)
            place = np.full(len(units), -window - before)  # of each unit in its text; the others are far away
            place[inside] = np.arange(len(inside))
            found.append((starts[:, None] <= place) & (place < starts[:, None] + window))
        return np.concatenate(found)
