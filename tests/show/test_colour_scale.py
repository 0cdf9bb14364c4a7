"""Colours of scores."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from itertools import product

import numpy as np

from raison.show import colour_scale
from raison.show.colour_scale import (
    AGAINST_TARGET,
    FOR_TARGET,
    GIVES_LESS,
    GIVES_MORE,
    INK_COLOURS,
    PAPER_COLOURS,
    SILENT_WEIGHT,
    background_colour,
    colour_contrast,
    ink_colour,
    relative_weights,
)
from raison.show.terminal.style import paper_of_terminal


def test_scale_is_readable_everywhere():
    for paper, hues, weight in product(
        PAPER_COLOURS.values(),
        (colour_scale.SCORE_HUES, colour_scale.DIFFERENCE_HUES),
        np.linspace(-1, 1, 201),
    ):
        if colour := background_colour(float(weight), paper, hues):
            assert colour_contrast(ink_colour(colour), colour) >= 4.5
    assert colour_contrast(GIVES_MORE, GIVES_LESS) >= 2  # a light green and a dark red
    assert (
        background_colour(SILENT_WEIGHT / 2, PAPER_COLOURS["light"]) is None
        and background_colour(1, PAPER_COLOURS["dark"]) == FOR_TARGET
    )
    assert relative_weights(np.zeros(3)).tolist() == [0, 0, 0] and relative_weights(
        np.array([1, -4.0])
    ).tolist() == [
        0.25,
        -1,
    ]
    assert [paper_of_terminal(s) for s in ("15;0", "0;15", "0;default;15", "", "x")] == [
        "dark",
        "light",
        "light",
        None,
        None,
    ]


def test_page_has_the_same_scale():
    script = (files("raison") / "page" / "scale.js").read_text("utf-8")
    names = "FOR|AGAINST|MORE|LESS|INKS|SILENT"
    found = {
        name: json.loads(value) for name, value in re.findall(rf"const ({names}) = (.*);", script)
    }
    colours = {"FOR": FOR_TARGET, "AGAINST": AGAINST_TARGET, "MORE": GIVES_MORE, "LESS": GIVES_LESS}
    expected = {name: list(colour) for name, colour in colours.items()}
    assert found == {**expected, "INKS": [list(i) for i in INK_COLOURS], "SILENT": SILENT_WEIGHT}
    for name, paper in PAPER_COLOURS.items():
        assert f"{name}: {list(paper)}" in script
        assert f"rgb({' '.join(map(str, paper))})" in (
            files("raison") / "page" / "page.css"
        ).read_text("utf-8")
