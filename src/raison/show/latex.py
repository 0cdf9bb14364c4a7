"""Results as LaTeX that can be pasted into a paper: explanations as coloured text, evaluations as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raison.core.evaluation import Column, Evaluation, target_probability
from raison.core.records import Explanation
from raison.show.agreement_sentences import method_titles
from raison.show.colour_scale import (
    FOR_TARGET,
    PAPER_COLOURS,
    RGB,
    SELECTED_COLOUR,
    background_colour,
    ink_colour,
    relative_weights,
)
from raison.show.evaluation_tables import (
    best_methods_of_column,
    column_heading,
    table_number,
    warning_of_few_evaluated_texts,
)
from raison.show.explanation_groups import subject_of_explanation
from raison.show.rationale_sentences import is_rationale
from raison.show.text_formats import clean_text
from raison.show.text_pieces import (
    TextPiece,
    is_selected_piece,
    is_unproved_selection,
    strongest_weight_of_piece,
    text_passages,
)

__all__ = ["escape_latex", "to_latex"]

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "→": r"$\rightarrow$", "↑": r"$\uparrow$",
    "↓": r"$\downarrow$", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "\n": r"\\ ",
}  # fmt: skip


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(SPECIAL.get(sign, sign) for sign in clean_text(text))


def to_latex(result: Evaluation | Sequence[Explanation]) -> str:
    """An evaluation as a table, explanations as coloured text."""
    if isinstance(result, Evaluation):
        return latex_evaluation_table(result)
    return latex_coloured_texts(result)


# -- coloured text ------------------------------------------------------------------------------------------


def latex_coloured_texts(explanations: Sequence[Explanation]) -> str:
    """The text of each explanation in the colours of its scores."""
    lines = [r"% needs \usepackage{xcolor}", r"{\setlength{\fboxsep}{1pt}\raggedright"]
    for name, explanation in zip(latex_titles(explanations), explanations, strict=True):
        lines.append(latex_title_line(name, explanation))
        weights = relative_weights(explanation.scores)
        for passage in text_passages(explanation):
            line = ""
            for piece in passage.pieces:
                line += latex_coloured_piece(piece, explanation, weights)
            lines.append(line + r"\par\smallskip")
    return "\n".join([*lines, "}", ""])


def latex_titles(explanations: Sequence[Explanation]) -> list[str]:
    """Short names for methods about one subject, else each with its parameters."""
    subjects = {subject_of_explanation(explanation) for explanation in explanations}
    if len(explanations) > 1 and len(subjects) == 1:
        return method_titles(explanations)
    return [explanation.method for explanation in explanations]


def latex_title_line(name: str, explanation: Explanation) -> str:
    """The method, the target and its probability."""
    title = rf"\textbf{{{escape_latex(name)}}}: {escape_latex(explanation.target.text)}"
    probability = target_probability(explanation.prediction)
    if probability is not None:
        title += f" ({100 * probability:.1f}\\,\\%)"
    return title + r"\par"


def latex_coloured_piece(piece: TextPiece, explanation: Explanation, weights: np.ndarray) -> str:
    """One piece of text on its colour; the space around it stays bare, so that lines can break."""
    word = piece.text.strip()
    if not piece.units or not word:
        if piece.kind == "outcome":
            return rf" $\rightarrow$ \textbf{{{escape_latex(piece.text)}}}"
        return escape_latex(piece.text)

    before, _, after = piece.text.partition(word)
    inside = escape_latex(word)
    colour = latex_piece_colour(piece, explanation, weights)
    if colour is None:
        return f"{before}{inside}{after}"
    if ink_colour(colour) != (0, 0, 0):
        inside = rf"\textcolor{{white}}{{{inside}}}"
    rgb = ",".join(map(str, colour))
    return rf"{before}\colorbox[RGB]{{{rgb}}}{{\strut {inside}}}{after}"


def latex_piece_colour(
    piece: TextPiece, explanation: Explanation, weights: np.ndarray
) -> RGB | None:
    """The colour of a piece: one for all that was selected, or a shade of its score."""
    is_selected = is_selected_piece(piece, explanation)
    if is_rationale(explanation):
        return FOR_TARGET if is_selected else None
    if is_unproved_selection(explanation):
        return SELECTED_COLOUR if is_selected else None
    strongest = strongest_weight_of_piece(piece, weights)
    return background_colour(strongest, PAPER_COLOURS["light"])


# -- tables -------------------------------------------------------------------------------------------------


def latex_evaluation_table(evaluation: Evaluation) -> str:
    """Methods down, numbers across; the best of each column in bold, intervals below."""
    titles = [escape_latex(column_heading(column)) for column in evaluation.columns]
    alignment = "l" + "r" * len(evaluation.columns)
    lines = [
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        latex_row(["", *titles]),
        r"\midrule",
    ]
    for method in evaluation.methods:
        lines += latex_rows_of_method(evaluation, method)
    lines += [r"\bottomrule", r"\end{tabular}"]
    for note in warning_of_few_evaluated_texts(len(evaluation.texts)):
        lines.append(rf"\par{{\footnotesize {escape_latex(note)}\par}}")
    return "\n".join([*lines, ""])


def latex_row(cells: Sequence[str]) -> str:
    """The cells of a row of a table."""
    return " & ".join(cells) + r" \\"


def latex_rows_of_method(evaluation: Evaluation, method: str) -> list[str]:
    """The numbers of a method, and below them their intervals, if it has any."""
    values, intervals = [escape_latex(method)], [""]
    for column in evaluation.columns:
        values.append(latex_cell_value(evaluation, method, column))
        intervals.append(latex_cell_interval(evaluation, method, column))
    if not any(intervals):
        return [latex_row(values)]
    return [latex_row(values), latex_row(intervals)]


def latex_cell_value(evaluation: Evaluation, method: str, column: Column) -> str:
    """A number, in bold where it is the best of its column."""
    cell = evaluation.cell(method, column.key)
    value = escape_latex(table_number(cell.value))
    if method in best_methods_of_column(evaluation, column):
        return rf"\textbf{{{value}}}"
    return value


def latex_cell_interval(evaluation: Evaluation, method: str, column: Column) -> str:
    """The interval of a number in small print."""
    cell = evaluation.cell(method, column.key)
    if cell.low is None or cell.high is None:
        return ""
    low = escape_latex(table_number(cell.low))
    high = escape_latex(table_number(cell.high))
    return rf"{{\scriptsize {low} to {high}}}"
