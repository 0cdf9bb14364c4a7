"""Scores of a rationalizer, counted by hand; and sentences about what goes wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from raison.rationalizers.evaluate import evaluate_rationalizer
from raison.rationalizers.output import RationalizerOutput
from raison.rationalizers.report import (
    ClassQuality,
    RationalizerScores,
    RegressionQuality,
    troubles,
)
from raison.training.labelled_lines import LabelledLine


class Scripted:
    """Says and selects what the tokens of a text spell out: 1x the answer, 2x that from the full text, 30 a word that
    is dropped, 31 one that is kept behind the first pruning block only, 32 one that is kept."""

    device = torch.device("cpu")

    def eval(self):
        return self

    def __call__(self, input_ids, rationale=None, full=True, **_):
        real = input_ids >= 30
        first, last = real & (input_ids >= 31), real & (input_ids == 32)
        own = last if rationale is None else rationale.bool() & real
        said, whole = (torch.eye(3)[input_ids[:, k] % 10] for k in (0, 1))
        side = torch.zeros_like(input_ids)
        empty = real.any(1) & ~last.any(1)
        return RationalizerOutput(
            logits=said, rationale=own.long(), masks=(first.long(), own.long()), empty=empty, real=real, side=side,
            full_logits=whole if full else None,
        )  # fmt: skip


def test_what_is_measured_is_counted_by_hand():
    yes, no = True, False
    lines = [  # said, said from the full text, words; what people marked
        LabelledLine(
            (10, 21, 32, 30, 32), 0, gold=(no, no, yes, yes, no)
        ),  # right; wrong; keeps 2 of 3, 1 of 2 marked
        LabelledLine(
            (11, 21, 31, 30, 30, 30), 1, gold=(no, no, yes, no, no, no)
        ),  # right, right; keeps nothing, empty
        LabelledLine((12, 20, 32, 32), 0),  # wrong, right; keeps all 2; nothing is marked
        LabelledLine(
            (11, 21, 32, 31, 30, 30, 30), 2, gold=(no, no, no, yes, no, no, no)
        ),  # wrong, wrong; keeps 1 of 5
    ]
    found = evaluate_rationalizer(Scripted(), lines, 0)
    assert found.from_rationale.accuracy == 2 / 4 and found.from_full_text.accuracy == 2 / 4
    assert found.sparsity == pytest.approx(5 / 14) and found.first_sparsity == pytest.approx(7 / 14)
    assert (found.empty, found.full) == (1 / 4, 1 / 4)
    # of the three texts with marks: kept 3, marked 4, both 1
    assert (found.human.precision, found.human.recall) == (pytest.approx(1 / 3), 1 / 4)
    assert found.human.f1 == pytest.approx(2 / 7)
    every = evaluate_rationalizer(Scripted(), lines, 0, every_token=True)
    assert every.sparsity == 1.0 and every.from_full_text is None


def test_troubles_are_told():
    def scores(accuracy=0.8, full_text=0.85, **shares) -> RationalizerScores:
        return RationalizerScores(
            from_rationale=ClassQuality(accuracy, 0.0),
            from_full_text=None if full_text is None else ClassQuality(full_text, 0.0),
            **{
                "sparsity": 0.2,
                "first_sparsity": 0.2,
                "text_sparsities": (),
                "empty": 0.0,
                "full": 0.0,
                **shares,
            },
            human=None,
        )

    low = ClassQuality(0.0, 0.0)
    assert troubles(scores(), low, 0.5) == ()
    assert (
        troubles(scores(1.0), low, 0.99) == ()
    )  # more than the commonest label, as far as there is room
    assert troubles(scores(1.0), low, 1.0) == ()
    assert "44% of the rationales would be empty" in troubles(scores(empty=0.44), low, 0.5)[0]
    assert "the whole text" in troubles(scores(full=0.5), low, 0.5)[0]
    assert "commonest label" in troubles(scores(0.51), low, 0.5)[0]
    assert "interlocking" in troubles(scores(0.65), low, 0.5)[0]
    assert "interlocking" in troubles(scores(0.65, full_text=None), ClassQuality(0.85, 0.0), 0.5)[0]
    unrelated = replace(scores(), from_rationale=RegressionQuality(1.0, 1.0, -0.1))
    assert "nothing to do" in troubles(unrelated, unrelated.from_rationale, 0.0)[0]
