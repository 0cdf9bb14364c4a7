"""Pictures of `raison reproduce`."""

from __future__ import annotations

import pytest

from raison.core.evaluation import Evaluation
from raison.studies.reproduce.run_suite import RunOutcome
from raison.studies.reproduce.suite import Suite, SuiteRun


def test_all_runs_are_drawn_in_one_picture(tmp_path):
    from raison.cli.reproduce import curves_of_suite_outcomes, draw_page_figures

    pytest.importorskip("matplotlib")
    suite = Suite(
        "P0-figure4", "a title", "a paper", {}, (), figures=("repetition_curve",), together=True
    )
    curves = {"repetition_curve": {"the": [0.1, 0.2]}}
    evaluation = Evaluation("m", "d", ("a",), (), (), (), curves=curves, settings={"seed": 0})
    outcomes = [RunOutcome(SuiteRun(name, "m", "d"), evaluation) for name in ("one", "two")]
    assert list(curves_of_suite_outcomes(outcomes)["repetition_curve"]) == ["one: the", "two: the"]
    assert draw_page_figures(tmp_path / "page.md", suite, outcomes) == {
        "two": "figures/P0-figure4.svg"
    }
    assert (tmp_path / "figures" / "P0-figure4.svg").read_text().count("<svg") == 1
    assert draw_page_figures(tmp_path / "page.md", suite, []) == {}
