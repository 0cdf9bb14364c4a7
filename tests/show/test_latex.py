"""Results as LaTeX."""

from __future__ import annotations

import re

from raison.show import colour_scale
from raison.show.figure.explanation_sheet import ExplanationSheet
from raison.show.latex import escape_latex, to_latex
from tests.helpers.pictures import drawing
from tests.helpers.scored_explanations import (
    selection_of_rationalizer,
)


@drawing
def test_a_selection_in_latex_and_in_pictures_has_no_colours_of_evidence():
    own = selection_of_rationalizer()
    written = to_latex([own])
    assert written.count("217,218,222") == 3 and written.count("colorbox") == 3
    sheet = ExplanationSheet()
    sheet.add_texts(own)
    assert [box.colour for box in sheet.boxes] == [colour_scale.SELECTED_COLOUR] * 3


def test_latex_prints_the_text_as_it_is(explanations, evaluation):
    assert (
        escape_latex(r"a\b_{c}^~ 5% &")
        == r"a\textbackslash{}b\_\{c\}\textasciicircum{}\textasciitilde{} 5\% \&"
    )
    assert escape_latex("$1 #2 <x|y>") == r"\$1 \#2 \textless{}x\textbar{}y\textgreater{}"
    text = to_latex(explanations)
    plain = re.sub(r"\\colorbox\[RGB\]\{[\d,]+\}\{\\strut ((?:[^{}]|\\\{|\\\})*)\}", r"\1", text)
    assert (
        plain.count(escape_latex(explanations[0].encoding.texts[0])) == 2
        and text.count(r"\colorbox") > 6
    )
    table = to_latex(evaluation)
    rows = [line for line in table.split("\n") if line.endswith(r"\\")]
    assert len(rows) == 5 and all(row.count("&") == len(evaluation.columns) for row in rows)
    assert table.count(r"\textbf") >= len(evaluation.columns) - 1
    value = evaluation.cell("leave_one_out", "aopc").value
    assert f"{value:.4f}".lstrip("-") in table
