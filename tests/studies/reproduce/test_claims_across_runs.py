"""Runs are compared on the texts and columns that both have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raison.studies.reproduce.claims_across_runs import join_runs, verdicts_across
from raison.studies.reproduce.suite import ClaimAcross, RunMethod


def test_runs_are_compared_on_the_texts_that_both_have():
    from raison.core.evaluation import Cell, Column, EvaluatedText, Evaluation

    def run(ids, values):
        cell = Cell("m", "error", float(np.mean(values)), None, None, tuple(map(float, values)))
        texts = tuple(EvaluatedText(str(each), "text") for each in ids)
        return Evaluation(
            "model", "data", ("m",), (Column("error", "x", False),), (cell,), texts, {}, {"seed": 0}
        )

    first = run(range(12), [k / 100 for k in range(12)])
    second = run(
        range(13, 1, -1), [0.5 + k / 100 for k in range(13, 1, -1)]
    )  # others, and in another order
    both = join_runs({"a": first, "b": second})
    assert [text.id for text in both.texts] == [str(k) for k in range(2, 12)]
    np.testing.assert_allclose(
        np.array(both.cell("b: m", "error").each) - both.cell("a: m", "error").each, 0.5
    )
    one, other, absent = RunMethod("a", "m"), RunMethod("b", "m"), RunMethod("c", "m")
    claims = [
        ClaimAcross("better", one, other, "error"),
        ClaimAcross("absent", one, absent, "error"),
    ]
    ((claim, verdict),) = verdicts_across(claims, {"a": first, "b": second})
    assert (claim.text, verdict.better, verdict.count) == ("better", "a: m", 10)
    assert verdict.difference == pytest.approx(-0.5)
    assert join_runs({"a": first, "b": run([20, 21], [0, 1])}) is None
    # a number that only one of them has is not compared, and the others are
    more = Cell("m", "ratio", 1.0, None, None, (1.0,) * 12)
    wider = replace(
        first, columns=(*first.columns, Column("ratio", "x", False)), cells=(*first.cells, more)
    )
    claims = [ClaimAcross("better", one, other, key) for key in ("error", "ratio")]
    for runs in ({"a": wider, "b": second}, {"a": second, "b": wider}):
        ((claim, _),) = verdicts_across(claims, runs)
        assert claim.key == "error"
