"""A picture of a matrix of rationales."""

from __future__ import annotations

from raison.show import to_figure
from raison.show.rationale_matrix import CHOSEN, matrix_of_rationales
from tests.helpers.pictures import drawing, size_of_png, texts_of_picture
from tests.helpers.rationales import (
    rationales_of_tokens,
)


@drawing
def test_picture_of_a_matrix(tmp_path):
    texts = texts_of_picture(rationales_of_tokens(p3={"is_prediction": False}), tmp_path / "a.svg")
    assert (
        texts.count("cat") == 2 and "on ≠" in texts and "≠  not the model's own prediction" in texts
    )
    svg = (tmp_path / "a.svg").read_text("utf-8")
    chosen = int((matrix_of_rationales(rationales_of_tokens()).cells == CHOSEN).sum())
    assert (
        svg.count("fill: #ec7a16") == chosen + 1 and svg.count('style="fill: url(#h') == 5 + 1
    )  # and the legend
    narrow, wide = tmp_path / "a.png", tmp_path / "b.png"
    to_figure(rationales_of_tokens(), narrow)
    to_figure(rationales_of_tokens(" ".join(f"w{i}" for i in range(50))), wide)
    assert (
        size_of_png(wide)[0] > size_of_png(narrow)[0]
        and size_of_png(wide)[1] > size_of_png(narrow)[1]
    )
