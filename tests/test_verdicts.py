"""From numbers of texts to what a reader is told: differences, p-values, who is better, whether a claim holds."""

from __future__ import annotations

import pytest

from raison.core.evaluation import Cell, Column, EvaluatedText, Evaluation
from raison.metrics.base import Share
from raison.metrics.statistics import pooled_gap_interval, pooled_permutation_test
from raison.studies.compare import compare
from raison.studies.reproduce.page import claim_result, section
from raison.studies.reproduce.run import Outcome
from raison.studies.reproduce.suite import Claim, ClaimAcross, Run, RunMethod, Suite

SIX = ((1.0,) * 6, (0.0,) * 6)  # of 64 sign changes two are as far apart: p = 2 / 64


def table(**columns):
    """An evaluation of methods a and b by hand; a column is (numbers of a, numbers of b, whether more is better)."""
    made, cells = [], []
    for key, (first, second, higher) in columns.items():
        pooled = isinstance(first[0], Share)
        made.append(Column(key, key, higher, pooled))
        for method, values in (("a", first), ("b", second)):
            each = tuple(float(value) for value in values)
            more = {"parts": tuple(v.part for v in values), "wholes": tuple(v.whole for v in values)} if pooled else {}
            cells.append(Cell(method, key, sum(each) / len(each), None, None, each, **more))
    cells.sort(key=lambda cell: cell.method)
    settings = {"seed": 0, "level": 0.95, "limit": 6}
    texts = tuple(EvaluatedText(str(number), "a text") for number in range(len(cells[0].each)))
    return Evaluation("a model", "a set", ("a", "b"), tuple(made), tuple(cells), texts, {}, settings)


def test_several_numbers_are_corrected():
    (alone,) = compare(table(one=(*SIX, True)), "a", "b")
    assert (alone.p, alone.corrected, alone.better) == (2 / 64, 2 / 64, "a")
    both = compare(table(one=(*SIX, True), two=(*SIX, True)), "a", "b")
    assert [(v.p, v.corrected, v.better) for v in both] == [(2 / 64, 4 / 64, "")] * 2  # Holm: twice, so not at 5 %


@pytest.mark.parametrize(("higher", "better"), [(True, "a"), (False, "b"), (None, "")])
def test_who_is_better(higher, better):
    (found,) = compare(table(one=(*SIX, higher)), "a", "b")
    assert (found.difference, found.better, found.count) == (1.0, better, 6)
    (turned,) = compare(table(one=(*SIX, higher)), "b", "a")
    assert (turned.difference, turned.better) == (-1.0, better)


def test_sizes_of_a_difference():
    (found,) = compare(table(one=((1.0, 3.0, 0.0, 2.0), (0.0, 0.0, 1.0, 2.0), True)), "a", "b")
    moved = [1.0, 3.0, -1.0, 0.0]
    mean = sum(moved) / 4
    spread = (sum((each - mean) ** 2 for each in moved) / 3) ** 0.5
    assert found.difference == mean and found.effect == pytest.approx(mean / spread)
    assert found.superiority == 2.5 / 4  # two of four, and a tie by half
    assert found.low < mean < found.high


def test_pooled_numbers_are_tested_as_such():
    """Wholes differ much, so ratios of single texts would say something else."""
    first = [Share(9, 10), Share(1, 40), Share(3, 5), Share(2, 2), Share(0, 30), Share(7, 9)]
    second = [Share(1, 2), Share(8, 60), Share(1, 50), Share(1, 4), Share(5, 6), Share(2, 30)]
    (found,) = compare(table(one=(first, second, True)), "a", "b")
    assert found.difference == pytest.approx(22 / 96 - 18 / 152)
    gap = pooled_gap_interval(first, second)
    assert (found.low, found.high, found.p) == (gap.low, gap.high, pooled_permutation_test(first, second).p)


CLAIM = Claim("A does well", "a", "b", "one")


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
    suite = Suite("S", "A suite", "a paper", {"a": "a", "b": "b"}, (Run("r", "m", "d"),), claims=(CLAIM,))
    outcome = Outcome(suite.runs[0], evaluation, [(CLAIM, verdict)])
    page = section(suite, [outcome], "raison reproduce S")
    assert f"- A does well (one): {told} on r." in page
    row = next(line for line in page.splitlines() if line.startswith("| A does well"))
    cells = [each.strip() for each in row.strip("|").split("|")]
    assert cells[-1] == told and cells[-2] == f"{verdict.corrected:.3f}" and cells[-3] == str(len(numbers[0]))
    assert cells[1].startswith(f"{verdict.difference:+.4f}")


@pytest.mark.parametrize(("first", "second", "told"), [("a", "b", "holds"), ("b", "a", "**the contrary holds**")])
def test_what_a_page_says_of_two_runs(first, second, told):
    claim = ClaimAcross("One model does better", RunMethod("r", first), RunMethod("s", second), "one")
    runs = (Run("r", "m", "d"), Run("s", "n", "d"))
    suite = Suite("S", "A suite", "a paper", {"a": "a", "b": "b"}, runs, across=(claim,))
    outcomes = [Outcome(run, table(one=(*SIX, True))) for run in runs]
    page = section(suite, outcomes, "raison reproduce S")
    row = next(line for line in page.splitlines() if line.startswith("| One model does better"))
    assert row.rstrip(" |").endswith(told) and "| 6 | 0.031 |" in row
