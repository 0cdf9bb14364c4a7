"""How many units make a rationale."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError
from raison.core.registry import metrics
from raison.metrics.plausibility import (
    rationale_length,
)
from tests.helpers.plausibility import numbers, subject

# -- how many units -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "k, units, gold, share, expected",
    [
        (None, 20, 3, None, 3),
        (None, 20, 3, 0.25, 5),
        (None, 10, 3, 0.25, 3),  # 2.5 is rounded up
        (None, 10, 3, 0.01, 1),
        (7, 20, 3, 0.25, 7),
        (30, 20, 3, None, 20),
        (0.1, 20, 3, 0.9, 2),
        (1, 20, 3, None, 1),
        (1.0, 20, 3, None, 20),
        (None, 5, 0, None, 1),
    ],
)
def test_length_of_a_rationale(k, units, gold, share, expected):
    assert rationale_length(k, units, gold, share) == expected


@pytest.mark.parametrize(
    "spec", ["token_f1_micro(k=0)", "token_iou(k=1.5)", "precision_at_k(k=-1)", "top_1(k=3)"]
)
def test_bad_parameters_are_refused(spec):
    with pytest.raises(InputError):
        metrics.build(spec)


def test_more_bad_parameters_are_refused():
    for spec in (
        "micro_recall_at_k(k=0.5)",
        "span_f1_micro(threshold=0.4)",
        "auprc(area=round)",
        "gold_mass(sign=all)",
    ):
        with pytest.raises(InputError):
            metrics.build(spec)


def test_a_rationale_is_taken_as_it_is():
    scores = [5, 4, 3, 2, 1]
    plain = numbers("token_f1_macro(k=2)", subject(scores, [(3, 4)]))
    chosen = numbers("token_f1_macro(k=2)", subject(scores, [(3, 4)], selected=[0, 0, 0, 1, 1]))
    assert plain["token_f1_macro"] == 0 and chosen["token_f1_macro"] == 1
    first = subject(scores, [(3, 3)], selected=[0, 0, 0, 1, 1], order=[3, 4])
    assert (
        numbers("top_1", first)["top_1"] == 1
    )  # what was found first is the best, whatever its score
