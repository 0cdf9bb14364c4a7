"""Pictures of one explanation."""

from __future__ import annotations

import sys
import xml.dom.minidom

import pytest

from raison.core.errors import InputError, MissingExtra
from raison.core.records import Explanation, Target
from raison.core.units import group_tokens
from raison.show import to_figure
from raison.show.rationale_matrix import matrix_of_rationales
from tests.helpers.pictures import drawing, size_of_png, texts_of_picture
from tests.helpers.rationales import (
    court_rationale,
    encode_spaced_words,
    grounded_rationale,
    rationale,
    rationales_of_tokens,
)
from tests.helpers.scored_explanations import (
    scored,
)


@drawing
def test_long_texts_are_drawn_whole(tmp_path):
    long = " ".join(f"{'x' * 30}{i}" for i in range(140))
    to_figure(scored(long), tmp_path / "a.svg")
    assert f"<!-- {'x' * 30}70 -->" in (tmp_path / "a.svg").read_text("utf-8")


@drawing
def test_picture_of_one_rationale(tmp_path):
    texts = texts_of_picture(court_rationale(is_prediction=False), tmp_path / "a.svg")
    for word in (
        "Supreme",
        "Court",
        "challenge",
        "start",
        "+",
        "✓",
        "probability",
        "12.5 %",
        "80.0 %",
    ):
        assert any(word == text or word in text.split() or word in text for text in texts)
    assert "+ Court" in texts and "the whole context" in texts and "constitution" in " ".join(texts)
    assert "sufficient" in texts and "prefers" in texts
    svg = (tmp_path / "a.svg").read_text("utf-8")
    assert svg.count("fill: #ec7a16") == 3 + 4  # three units, four bars
    to_figure(court_rationale(), tmp_path / "a.png")
    assert size_of_png(tmp_path / "a.png")[0] == 1500


@drawing
def test_nothing_is_drawn_outside_the_paper(tmp_path):
    from raison.show.figure.explanation_sheet import explanation_figure
    from raison.show.figure.matrix import matrix_figure

    long = "Donaudampfschifffahrtsgesellschaftskapitänswitwe" * 4
    encoding = encode_spaced_words(f"{long} is a word")
    lone = rationale(
        encoding, Target("token", (1,), (4,), " " + long, "log_prob"), [0, 1], status="budget"
    )
    for figure in (
        explanation_figure(court_rationale()),
        explanation_figure(grounded_rationale()),
        explanation_figure(lone),
        matrix_figure(matrix_of_rationales(rationales_of_tokens(f"a {long} b c d"))),
    ):
        paper = figure.bbox
        renderer = figure.canvas.get_renderer()
        for text in figure.axes[0].texts:
            box = text.get_window_extent(renderer)
            assert (
                box.x0 >= -1 and box.y0 >= -1 and box.x1 <= paper.x1 + 1 and box.y1 <= paper.y1 + 1
            ), text.get_text()


@drawing
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_pictures_are_the_same_twice(tmp_path, ending):
    one, two = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    for what in (court_rationale(), rationales_of_tokens()):
        to_figure(what, one)
        to_figure(what, two)
        assert one.read_bytes() == two.read_bytes() and one.stat().st_size > 4000


@drawing
def test_pictures_of_strange_texts(tmp_path):
    strange = encode_spaced_words("这部电影 $x_1$ costs $5 \x1b[31m </svg> --> 👩‍👩‍👧 नमस्ते now")
    explanation = rationale(
        strange, Target("token", (1,), (len(strange),), "吗\x07", "log_prob"), [0, 3, 5]
    )
    texts = texts_of_picture(explanation, tmp_path / "a.svg")  # warnings are errors here
    assert any("$" in text for text in texts)
    assert not set((tmp_path / "a.svg").read_text("utf-8")) & set("\x1b\x07")
    xml.dom.minidom.parse(str(tmp_path / "a.svg"))
    formula = rationale(
        encode_spaced_words("one two three"),
        Target("token", (1,), (3,), "$\\nope$", "log_prob"),
        [0],
    )
    assert any(
        "$\\nope$" in text for text in texts_of_picture(formula, tmp_path / "b.svg")
    )  # no formula, so no wrong one


@drawing
def test_picture_of_scores_needs_no_rationale(tmp_path):
    encoding = encode_spaced_words("A great film")
    units = group_tokens(encoding, "word")
    plain = Explanation(
        encoding, units, Target("label", (1,), text="good"), [0.1, 2, -2], "occlusion", "tiny"
    )
    assert "great" in texts_of_picture(plain, tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text("utf-8")
    assert "fill: #ec7a16" in svg and "fill: #2472d6" in svg


def test_pictures_that_cannot_be(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"\.png, \.svg or \.pdf, not in '\.jpg'"):
        to_figure(court_rationale(), tmp_path / "a.jpg")
    with pytest.raises(InputError, match="write a file for each"):
        to_figure([court_rationale(), grounded_rationale()], tmp_path / "a.png")
    with pytest.raises(InputError, match="nothing to draw"):
        to_figure([], tmp_path / "a.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"raison\[plot\]"):
        to_figure(court_rationale(), tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


@drawing
def test_picture_that_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="can't be written"):
        to_figure(court_rationale(), tmp_path / "none" / "a.png")
