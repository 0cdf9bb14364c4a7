"""One explanation in the terminal, with and without colours, fed with awkward texts."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from rich.console import Console

from raison.core.records import Target
from raison.show import render
from raison.show.text_formats import clean_text, signed_score
from tests.helpers.scored_explanations import (
    CASES,
    MOVIE,
    encode_words,
    scored,
    selection_of_rationalizer,
)
from tests.helpers.terminal import bare, coloured, show


def test_plain_output_needs_no_colour(explanation):
    output = show(explanation)
    assert "\x1b" not in output and "\x9b" not in output
    assert (
        "positive 98.7 %" in output
        and "tiny-sentiment" in output
        and "occlusion(width=1)" in output
    )
    flat = re.sub(r"[\s\[\]*+-]", "", output)
    for text in explanation.encoding.texts:
        assert re.sub(r"[\s\[\]*+-]", "", clean_text(text)) in flat
    if explanation.scores.any():
        top = int(np.abs(explanation.scores).argmax())
        assert signed_score(explanation.scores[top], abs(explanation.scores[top])) in output


def test_colour_output_is_the_same_text_in_colours(explanation):
    output = coloured(explanation, paper="dark")
    assert ("\x1b[38;2;" in output) == bool(explanation.scores.any())
    assert "\x1b[31m" not in output and "\x9b" not in output and "\u202e" not in output
    flat = re.sub(r"\s", "", bare(output))
    for text in explanation.encoding.texts:
        assert re.sub(r"\s", "", clean_text(text)) in flat


def test_marks_and_numbers_without_colour():
    output = show(CASES["plain"]())
    assert "A [+great], [+moving] film" in output
    assert "[-dull]" in output and "+2.500" in output and "-1.500" in output and "█" in output
    assert (
        show(CASES["plain"](), force_terminal=True, color_system="truecolor", no_color=True).count(
            "[+great]"
        )
        == 1
    )
    assert "All scores are zero." in show(CASES["zero"]())


def test_selected_units_are_marked():
    assert "A *great*, *moving* film" in show(CASES["selected"]())
    assert "2 of 12 words, in the order chosen: great → moving" in show(CASES["selected"]())
    assert re.search(r"\x1b\[1;4;[0-9;]*mgreat", coloured(CASES["selected"](), paper="light"))


@pytest.mark.parametrize("options", [{}, {"force_terminal": True, "color_system": "truecolor"}])
def test_a_selection_without_evidence_has_no_signs_values_or_bars(options):
    output = show(selection_of_rationalizer(), **options)
    assert "rationale 3 of 12 words" in bare(output)
    for sign in ("+", "0.9", "0.8", "█", "strongest", "against", "score", "logit", "48;2"):
        assert sign not in output
    assert "A *great*, *moving* film" in show(selection_of_rationalizer())
    assert re.search(r"\x1b\[1;4mgreat", coloured(selection_of_rationalizer(), paper="light"))
    nothing = show(scored(MOVIE, scores=np.zeros(12), selected=np.zeros(12, bool), removal=None))
    assert "rationale 0 of 12 words" in nothing and "All scores are zero." not in nothing


def test_segments_are_named():
    output = show(CASES["pair"]())
    assert re.search(r"first\s.*man", output) and re.search(r"second\s.*awake", output)


def test_target_that_is_not_the_prediction_is_said_so():
    other = Target("label", (0,), text="negative", contrast=(1,), contrast_text="positive")
    output = show(scored(MOVIE, target=other))
    assert (
        "target negative rather than positive" in output and "predicted positive 98.7 %" in output
    )


def test_what_was_cut_off_is_said():
    encoding = encode_words(
        "one two three four",
        truncated=2,
        ids=[0, 1],
        tokens=("one", "two"),
        segment=[0, 0],
        start=[0, 4],
        end=[3, 7],
        positions=[0, 1],
        fixed=[False] * 2,
    )
    output = show(scored(encoding=encoding))
    assert "2 tokens were cut off" in output and "one [two] {three four}" in output


def test_many_are_divided_and_methods_compared():
    first, second = CASES["plain"](), scored(MOVIE, scores=np.arange(12) - 6, method="attention")
    output = show([first, second, CASES["one"]()])
    assert "─" * 20 in output and re.search(r"unit\s+occlusion\s+attention", output)
    assert re.search(r"dull\s+-1.500\s+\+4.000", output)


def test_bars_are_true_in_any_room():
    long = "Donaudampfschifffahrtsgesellschaftskapitaen"
    for width in (30, 60, 80, 100):
        bars = re.findall(r"█+", show(scored(f"{long} {long} x", scores=[4, -2, 0]), width=width))
        assert len(bars) == 2 and len(bars[0]) == 2 * len(bars[1])


def test_narrow_terminals_and_poor_streams():
    for width in (20, 40):
        assert all(len(line) <= width for line in show(CASES["plain"](), width=width).splitlines())
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    render(CASES["plain"](), Console(file=stream, width=80, _environ={}))
    stream.flush()
