"""Differences between two methods."""

from __future__ import annotations

import numpy as np

from raison.core.evaluation import Cell, Column, EvaluatedText, Evaluation
from raison.studies.compare_methods import compare


def table(level: float) -> Evaluation:
    rng = np.random.default_rng(0)
    made = {"a": rng.normal(0.1, 1, 60), "b": rng.normal(0.0, 1, 60)}
    cells = tuple(
        Cell(m, "aopc", float(v.mean()), None, None, tuple(v.tolist())) for m, v in made.items()
    )
    texts = tuple(EvaluatedText(str(k), str(k)) for k in range(60))
    return Evaluation(
        "m",
        "d",
        ("a", "b"),
        (Column("aopc", "aopc", True),),
        cells,
        texts,
        settings={"level": level, "seed": 0},
    )


def test_a_difference_has_the_interval_that_was_asked_for():
    wide, narrow = (compare(table(level), "a", "b")[0] for level in (0.95, 0.5))
    assert wide.low < narrow.low < narrow.difference < narrow.high < wide.high
