"""Pictures of several methods."""

from __future__ import annotations

import html
import re
import xml.dom.minidom
from dataclasses import replace

import pytest

from raison.core.errors import InputError
from raison.show import colour_scale, to_figure
from tests.helpers.pictures import drawing, size_of_png
from tests.helpers.rationales import (
    court_rationale,
    rationales_of_tokens,
)
from tests.helpers.scored_explanations import (
    MOVIE,
    explained_by_methods,
    four_methods,
    scored,
)


@drawing
def test_picture_of_methods_and_of_differences(tmp_path):
    to_figure(four_methods(), tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text("utf-8")
    texts = [html.unescape(text.strip()) for text in re.findall(r"<!-- (.*?) -->", svg, re.DOTALL)]
    assert texts.count("great") == 4 and {
        "leave_one_out",
        "lime",
        "gradient_norm",
        "random",
        "against",
    } <= set(texts)
    more, less = (colour_scale.hexadecimal_colour(hue) for hue in colour_scale.DIFFERENCE_HUES)
    assert (
        more not in svg and less not in svg and svg.count("fill: #ec7a16") == 4 + 1
    )  # full colour, and the key
    found = explained_by_methods([1, 0, 0.5], [0, 1, 0.5], text="one two three")
    to_figure(found, tmp_path / "b.svg", difference=True)
    svg = (tmp_path / "b.svg").read_text("utf-8")
    assert svg.count(f"fill: {more}") == svg.count(f"fill: {less}") == 2  # a word, and the key
    assert "<!-- − -->" in svg and svg.count("<!-- two -->") == 2
    xml.dom.minidom.parse(str(tmp_path / "b.svg"))


@drawing
def test_pictures_of_methods_are_the_same_twice_and_grow_with_them(tmp_path):
    one, two, more = tmp_path / "a.png", tmp_path / "b.png", tmp_path / "c.png"
    for path, found in (
        (one, four_methods()[:2]),
        (two, four_methods()[:2]),
        (more, four_methods()),
    ):
        to_figure(found, path, difference=path == more)
    assert one.read_bytes() == two.read_bytes() and size_of_png(more)[1] > size_of_png(one)[1]


def test_explanations_that_do_not_belong_together_are_no_picture(tmp_path):
    for found in (
        [scored(MOVIE), scored("Other text")],
        [court_rationale(), replace(court_rationale(), method="greedy")],
    ):
        with pytest.raises(InputError, match="several methods about one target"):
            to_figure(found, tmp_path / "a.png")
    for found in (scored(MOVIE), rationales_of_tokens()):
        with pytest.raises(InputError, match="two methods"):
            to_figure(found, tmp_path / "a.png", difference=True)
    assert not list(tmp_path.iterdir())
