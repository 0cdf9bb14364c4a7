"""Occlusion: windows of neighbouring units removed together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.errors import InputError
from raison.core.parameters import check_integer
from raison.core.records import Units
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.kept_sets import evaluate_sets
from raison.models.protocol import Model

__all__ = ["Occlusion"]


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
        check_integer("window", self.window, 1)
        check_integer("stride", self.stride, 1)
        if self.stride > self.window:
            raise InputError(
                f"A stride of {self.stride} leaves units between windows of {self.window} out: "
                f"use a stride of at most {self.window}."
            )

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        covers = []
        sets = []
        for units in batch.units:
            cover = self.windows(units)
            covers.append(cover)
            whole_text = np.ones((1, len(units)), bool)
            sets.append(np.concatenate([~cover, whole_text]))

        answers = []
        for cover, asked in zip(covers, evaluate_sets(model, batch, sets), strict=True):
            whole = asked.value[-1]
            drop = whole - asked.value[:-1]  # [n]
            windows_of_unit = np.maximum(1, cover.sum(0))
            scores = drop @ cover / windows_of_unit
            facts = {
                "value": whole,
                "evaluations": asked.evaluations,
                "windows": len(cover),
            }
            answers.append(Answer(scores, diagnostics=facts, cost=asked.cost))
        return answers

    def windows(self, units: Units) -> np.ndarray:
        """[n u] which units each window covers."""
        segment_of_unit = np.array([span[0] for span in units.spans], dtype=np.int64)
        covers = [np.zeros((0, len(units)), bool)]
        for segment in np.unique(segment_of_unit):
            inside = np.flatnonzero(segment_of_unit == segment)
            window = min(self.window, len(inside))
            # the first window that reaches the first unit
            before = (window - 1) // self.stride * self.stride
            starts = np.arange(-before, len(inside), self.stride)[:, None]

            # of each unit in its text; the others are far away
            place = np.full(len(units), -window - before)
            place[inside] = np.arange(len(inside))
            ends = starts + window
            covers.append((starts <= place) & (place < ends))
        return np.concatenate(covers)
