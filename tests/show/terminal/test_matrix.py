"""A matrix of rationales in the terminal."""

from __future__ import annotations

from raison.core.records import Explanation, Target
from tests.helpers.rationales import (
    encode_spaced_words,
    rationale,
    rationales_of_tokens,
)
from tests.helpers.terminal import flat, show


def test_terminal_shows_the_matrix_instead_of_each_one():
    output = show(
        rationales_of_tokens(
            p3={"sufficient": False, "is_prediction": False}, p4={"status": "budget"}
        )
    )
    lines = [line.rstrip() for line in output.splitlines()]
    assert "5 rationales of one text" in output and "checked anew" not in output
    assert " cat    0 ░░" in lines and " sat    1 ██░░" in lines
    assert (
        " on  !≠ 2 ████░░" in lines
        and " the …  2 ████· ░░" in lines
        and " mat    2 ████· · ░░" in lines
    )
    heads = [line[10:] for line in lines if line.startswith(" " * 9) and line.strip()]
    columns = [
        "".join(line.ljust(10)[place] for line in heads).strip() for place in range(0, 10, 2)
    ]
    assert columns == ["A", "cat", "sat", "on", "the"]
    legend = flat(output[output.index("██ in the") :])
    assert legend.startswith(
        "██ in the rationale ░░ given · not needed ! not sufficient ≠ not the model's own"
    )
    assert "the search ended early" in legend and "≠" not in show(rationales_of_tokens())


def test_no_row_is_lost_and_all_rules_are_named():
    encoding = encode_spaced_words("A cat sat", start=(0,))
    found = []
    for p in range(1, 4):  # the first sees the special token only
        target = Target("token", (p,), (p,), encoding.tokens[p], "log_prob")
        found.append(
            rationale(encoding, target, [], rule="argmax" if p > 1 else "probability(tau=0.9)")
        )
    output = show(found)
    assert "rules: probability(tau=0.9), argmax" in flat(output)
    assert [
        line.split() for line in output.splitlines() if line.startswith((" A ", " cat ", " sat "))
    ] == [
        ["A", "0"],
        ["cat", "0", "░░"],
        ["sat", "0", "·", "░░"],
    ]


def test_wide_matrices_come_in_blocks():
    text = " ".join(f"w{i}" for i in range(40))
    output = show(rationales_of_tokens(text), width=50)
    assert all(len(line) <= 50 for line in output.splitlines())
    lines = [line for line in output.splitlines() if line.startswith(" w39 ")]
    assert len(lines) > 1
    assert (
        sum(line.count("██") for line in lines) == 2
        and sum(line.count("░░") for line in lines) == 1
    )
    assert sum(line.count("·") for line in lines) == 36
    assert (
        sum(line.startswith(" w1 ") for line in output.splitlines()) == 1
    )  # sees nothing of the second block


def test_two_methods_make_two_matrices():
    five = rationales_of_tokens()
    other = [Explanation(**{**vars(e), "method": "greedy"}) for e in five]
    output = show([e for pair in zip(five, other, strict=True) for e in pair])
    assert (
        output.count("5 rationales of one text") == 2 and "refined" in output and "greedy" in output
    )
