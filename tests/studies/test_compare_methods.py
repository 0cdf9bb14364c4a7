"""From numbers of texts to differences, p-values, and who is better."""

from __future__ import annotations

import pytest

from raison.metrics.base import Share
from raison.metrics.statistics import pooled_gap_interval, pooled_permutation_test
from raison.studies.compare_methods import compare
from tests.helpers.evaluations import SIX, table


def test_several_numbers_are_corrected():
    (alone,) = compare(table(one=(*SIX, True)), "a", "b")
    assert (alone.p, alone.corrected, alone.better) == (2 / 64, 2 / 64, "a")
    both = compare(table(one=(*SIX, True), two=(*SIX, True)), "a", "b")
    assert [(v.p, v.corrected, v.better) for v in both] == [
        (2 / 64, 4 / 64, "")
    ] * 2  # Holm: twice, so not at 5 %


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
    assert (found.low, found.high, found.p) == (
        gap.low,
        gap.high,
        pooled_permutation_test(first, second).p,
    )
