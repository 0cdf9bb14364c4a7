"""Colours of scores."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from itertools import product

import numpy as np

from raison.show import scale
from raison.show.scale import (
    AGAINST,
    FOR,
    INKS,
    LESS,
    MORE,
    PAPERS,
    SILENT,
    background,
    contrast,
    ink,
    weights,
)
from raison.show.terminal.style import paper_of


def test_scale_is_readable_everywhere():
    for paper, hues, weight in product(
        PAPERS.values(), (scale.SCORES, scale.DIFFERENCES), np.linspace(-1, 1, 201)
    ):
        if colour := background(float(weight), paper, hues):
            assert contrast(ink(colour), colour) >= 4.5
    assert contrast(MORE, LESS) >= 2  # a light green and a dark red
    assert background(SILENT / 2, PAPERS["light"]) is None and background(1, PAPERS["dark"]) == FOR
    assert weights(np.zeros(3)).tolist() == [0, 0, 0] and weights(np.array([1, -4.0])).tolist() == [
        0.25,
        -1,
    ]
    assert [paper_of(s) for s in ("15;0", "0;15", "0;default;15", "", "x")] == [
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
    colours = {"FOR": FOR, "AGAINST": AGAINST, "MORE": MORE, "LESS": LESS}
    expected = {name: list(colour) for name, colour in colours.items()}
    assert found == {**expected, "INKS": [list(i) for i in INKS], "SILENT": SILENT}
    for name, paper in PAPERS.items():
        assert f"{name}: {list(paper)}" in script
        assert f"rgb({' '.join(map(str, paper))})" in (
            files("raison") / "page" / "page.css"
        ).read_text("utf-8")
