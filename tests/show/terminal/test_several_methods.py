"""Several methods in the terminal: their table, how far they agree, and where they differ."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from raison.core.records import Explanation, Target
from raison.show import colour_scale, render_many
from raison.show.agreement_measures import agreement_of_pairs
from raison.show.agreement_sentences import method_titles, statement_of_agreement
from tests.helpers.rationales import (
    court_rationale,
)
from tests.helpers.scored_explanations import (
    LOO,
    MOVIE,
    NASTY,
    NEAR,
    explained_by_methods,
    four_methods,
    scored,
    selection_of_rationalizer,
    twelve_methods,
)
from tests.helpers.terminal import bare, coloured, show, show_difference


def test_terminal_shows_the_difference_with_signs():
    output = show_difference(four_methods())
    assert output.count("difference leave_one_out − ") == 3
    part = output[output.index("difference leave_one_out − gradient_norm") :]
    assert "[-A] great, [+moving] [-film]; [-only] the [-ending] is [-dull]." in part
    assert "[+] leave_one_out gives more   [-] gradient_norm gives more" in part
    assert re.search(r"only +\+0\.120 +\+0\.556 +-0\.436 +█+", part)
    same = show_difference(explained_by_methods(LOO, np.array(LOO) * 7))
    assert "The two methods say the same." in same and "[+" not in same.partition("difference")[
        2
    ].replace("[+] ", "")
    assert "difference" not in show(four_methods())


def test_terminal_shows_the_difference_in_green_and_red():
    output = show_difference(
        explained_by_methods([1, 0, 0.5], [0, 1, 0.5], text="a b c"),
        force_terminal=True,
        color_system="truecolor",
    )
    part = output.partition("difference")[2]
    green, red = (";".join(map(str, hue)) for hue in colour_scale.DIFFERENCE_HUES)
    assert re.search(rf"\x1b\[4;38;2;0;0;0;48;2;{green}ma\x1b", part)  # underlined as well
    assert re.search(rf"\x1b\[38;2;255;255;255;48;2;{red}mb\x1b", part)
    assert "[+" not in bare(part) and "green, underlined" in part


def test_agreement_follows_the_table():
    output = show(four_methods())
    places = [
        output.index(part) for part in ("unit ", "random stands apart.", "agreement ", "Alike: ")
    ]
    assert places == sorted(places)
    lines = [line.split() for line in output[places[2] :].splitlines()[1:7]]
    found = agreement_of_pairs([each.scores for each in four_methods()])
    names = method_titles(four_methods())
    expected = sorted(found, key=lambda pair: -found[pair].tau)
    assert [line[:2] for line in lines] == [[names[i], names[j]] for i, j in expected]
    for line, pair in zip(lines, expected, strict=True):
        each = found[pair]
        assert line[2:] == [
            str(each.shared),
            "of",
            "3",
            *(f"{value:+.2f}" for value in (each.tau, each.rho, each.r)),
        ]


def test_constant_scores_have_no_number():
    output = show(explained_by_methods(LOO, np.zeros(12), NEAR))
    assert (
        re.search(r"leave_one_out +lime +- +- +- +-\n", re.sub(" +\n", "\n", output))
        and "nan" not in output
    )
    assert "lime gives every word the same score." in output
    assert "agreement" not in show(explained_by_methods(LOO, np.zeros(12)))


def test_many_methods_make_squares():
    found = twelve_methods()
    output = show(found, width=120)
    assert output.count("below the diagonal") == 2
    square = output[output.index("Kendall tau-b below") :].splitlines()[2:14]
    numbers = agreement_of_pairs([each.scores for each in found])
    for row, line in enumerate(square):
        cells = line.split()[2:]
        assert cells[row] == "·" and len(cells) == 12
        for place, cell in enumerate(cells):
            each = numbers.get((min(row, place), max(row, place)))
            if place < row:
                assert float(cell) == pytest.approx(each.tau, abs=0.0051)
            elif place > row:
                assert int(cell) == each.shared


def test_rationales_of_two_searches_are_compared_as_before():
    two = [court_rationale(), replace(court_rationale(), method="greedy")]
    output = show(two)
    assert (
        re.search(r"refined +greedy", output)
        and "agree" not in output
        and "difference" not in show_difference(two)
    )


def test_several_methods_fit_narrow_and_poor_terminals():
    for found in (
        four_methods(),
        twelve_methods(),
        explained_by_methods(LOO, LOO),
        explained_by_methods(*np.ones((3, 12))),
    ):
        for width in (24, 40, 60, 80):
            assert all(
                len(line) <= width for line in show_difference(found, width=width).splitlines()
            )
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")  # refuses what it can't carry
        render_many(found, Console(file=stream, width=80, _environ={}), difference=True)
        stream.flush()


def test_colours_change_no_word_and_nothing_commands_the_terminal():
    found = explained_by_methods(
        *np.random.default_rng(0).normal(size=(3, len(scored(NASTY).scores))), text=NASTY
    )
    found = [replace(each, method=f"{each.method}\x1b[31m") for each in found]
    plain, bright = show(found), coloured(found)
    assert not set(plain) & set("\x1b\x9b\u202e") and "\x1b[31m" not in bright
    ends = [output.partition("agreement ")[2].split() for output in (plain, bare(bright))]
    assert ends[0] == ends[1] and len(ends[0]) > 20


def test_a_selection_beside_scores_is_in_or_out():
    output = show([selection_of_rationalizer(), *explained_by_methods(LOO)])
    table = [
        line.split()
        for line in output.splitlines()
        if line.split()[:1] in (["great"], ["only"], ["film"])
    ]
    assert table == [["great", "selected", "+2.500"], ["film", "+0.050"], ["only", "-0.300"]]


def test_every_task_can_be_compared(tmp_path):
    import raison as library
    from raison.testing import tiny_model

    cases = {
        "pair": (tiny_model("bert", "classification"), ("A man sleeps.", "Nobody is awake here.")),
        "qa": (tiny_model("bert", "qa"), ("Who built it?", "Ada Lund built the tower.")),
        "writer": (tiny_model("llama", "causal"), "The old town lies on a hill"),
    }
    for model, text in cases.values():
        found = [
            library.explain(model, text, name)
            for name in ("leave_one_out", "gradient_norm", "attention_mean")
        ]
        found = [each for each in found if isinstance(each, Explanation)]
        output = show_difference(found)
        numbers = agreement_of_pairs([each.scores for each in found])
        assert len(found) == 3 and " ".join(
            statement_of_agreement(found, numbers).split()
        ) in " ".join(output.split())
        assert output.count("difference leave_one_out − ") == 2


def test_target_kinds_do_not_mix():
    """Two targets of one text are no comparison."""
    other = scored(MOVIE, scores=LOO, target=Target("label", (0,), text="negative"), method="lime")
    assert "agreement" not in show([four_methods()[0], other])
