"""What a page of results says of a claim."""

from __future__ import annotations

import pytest

from raison.studies.compare_methods import compare
from raison.studies.reproduce.reproduction_page import claim_result, suite_section
from raison.studies.reproduce.run_suite import RunOutcome
from raison.studies.reproduce.suite import ClaimAcross, RunMethod, Suite, SuiteClaim, SuiteRun
from tests.helpers.evaluations import SIX, table

CLAIM = SuiteClaim("A does well", "a", "b", "one")


@pytest.mark.parametrize(
    ("numbers", "higher", "told"),
    [
        (SIX, True, "holds"),
        (SIX, False, "**the contrary holds**"),
        (SIX[::-1], True, "**the contrary holds**"),
        (((1.0, 0.0), (0.0, 0.5)), True, "not decided"),
    ],
)
def test_what_a_page_says_of_a_claim(numbers, higher, told):
    evaluation = table(one=(*numbers, higher))
    (verdict,) = compare(evaluation, "a", "b")
    assert claim_result(CLAIM, verdict) == told
    suite = Suite(
        "S", "A suite", "a paper", {"a": "a", "b": "b"}, (SuiteRun("r", "m", "d"),), claims=(CLAIM,)
    )
    outcome = RunOutcome(suite.runs[0], evaluation, [(CLAIM, verdict)])
    page = suite_section(suite, [outcome], "raison reproduce S")
    assert f"- A does well (one): {told} on r." in page
    row = next(line for line in page.splitlines() if line.startswith("| A does well"))
    cells = [each.strip() for each in row.strip("|").split("|")]
    assert (
        cells[-1] == told
        and cells[-2] == f"{verdict.corrected:.3f}"
        and cells[-3] == str(len(numbers[0]))
    )
    assert cells[1].startswith(f"{verdict.difference:+.4f}")


@pytest.mark.parametrize(
    ("first", "second", "told"), [("a", "b", "holds"), ("b", "a", "**the contrary holds**")]
)
def test_what_a_page_says_of_two_runs(first, second, told):
    claim = ClaimAcross(
        "One model does better", RunMethod("r", first), RunMethod("s", second), "one"
    )
    runs = (SuiteRun("r", "m", "d"), SuiteRun("s", "n", "d"))
    suite = Suite("S", "A suite", "a paper", {"a": "a", "b": "b"}, runs, across=(claim,))
    outcomes = [RunOutcome(run, table(one=(*SIX, True))) for run in runs]
    page = suite_section(suite, outcomes, "raison reproduce S")
    row = next(line for line in page.splitlines() if line.startswith("| One model does better"))
    assert row.rstrip(" |").endswith(told) and "| 6 | 0.031 |" in row
