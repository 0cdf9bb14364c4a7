"""The path of a search, step by step, and as a table in the terminal."""

from __future__ import annotations

import re
from dataclasses import replace

from raison.core.findings import SearchStep
from raison.show.search_path_steps import path_excerpt, search_path
from tests.helpers.rationales import (
    court_rationale,
    rationale_of_many_steps,
)
from tests.helpers.terminal import show


def test_path_has_a_row_for_each_step():
    lines = show(court_rationale(), width=110).splitlines()
    table = lines[next(i for i, line in enumerate(lines) if line.startswith(" step")) :]
    assert re.match(r" +0 +start +0 +12.5 % +█+", table[1]) and "✓" not in table[1]
    assert re.match(r" +1 +\+ Court +1 +25.0 %", table[2]) and re.search(
        r"The 12.5 %, Supreme 12.5 %", table[2]
    )
    assert re.match(r" +3 +\+ The +3 +50.0 % +█+[▏▎▍▌▋▊▉]? +✓", table[4])
    assert re.match(r" +the whole context +9 +80.0 % +█{12} +✓", table[5])
    bars = [line.count("█") for line in table[1:6]]
    assert bars == sorted(bars) and bars[0] < bars[-1]


def test_swaps_and_values_that_are_no_probabilities():
    plain = court_rationale(likely=False)
    swap = SearchStep(
        action="swap", size=3, added=(1, 2), removed=(0,), value=-7.25, sufficient=True
    )
    plain = replace(plain, steps=(*plain.steps, swap))
    output = show(plain)
    assert re.search(r"\+ Supreme, Court  − The +3 +-7.25 +✓", output) and "█" not in output
    assert [step.weight for step in search_path(plain)] == [None] * 6


def test_long_paths_are_cut_short():
    steps = search_path(rationale_of_many_steps())
    shown = path_excerpt(steps)
    assert (
        len(steps) == 52
        and sum(s if isinstance(s, int) else 1 for s in shown) == 52
        and len(shown) < 14
    )
    assert "⋮ 41 steps more" in show(
        rationale_of_many_steps()
    ) and "rationale 50 of 59 tokens" in show(rationale_of_many_steps())
    assert path_excerpt(steps[:11]) == steps[:11]
