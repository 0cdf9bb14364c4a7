"""Results as LaTeX that can be pasted into a paper: coloured text by xcolor, tables by booktabs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raison.core.evaluation import Column, Evaluation, target_probability
from raison.core.records import Explanation
from raison.show import scale
from raison.show.certificate import is_rationale
from raison.show.consensus import method_titles, subject_of
from raison.show.scoreboard import headings, number, warning_of_few, winners
from raison.show.spans import Piece, flow, selected, selection
from raison.show.wording import clean

__all__ = ["escape", "to_latex"]

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "→": r"$\rightarrow$", "↑": r"$\uparrow$",
    "↓": r"$\downarrow$", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "\n": r"\\ ",
}  # fmt: skip


def escape(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(SPECIAL.get(sign, sign) for sign in clean(text))


def to_latex(result: Evaluation | Sequence[Explanation]) -> str:
    """An evaluation as a table, explanations as coloured text."""
    return table_of_evaluation(result) if isinstance(result, Evaluation) else coloured_texts(result)


# -- coloured text ------------------------------------------------------------------------------------------


def coloured_texts(explanations: Sequence[Explanation]) -> str:
    """The text of each explanation in the colours of its scores."""
    lines = [r"% needs \usepackage{xcolor}", r"{\setlength{\fboxsep}{1pt}\raggedright"]
    for name, explanation in zip(names_of(explanations), explanations, strict=True):
        lines.append(title_line(name, explanation))
        weights = scale.weights(explanation.scores)
        for passage in flow(explanation):
            pieces = [coloured_piece(piece, explanation, weights) for piece in passage.pieces]
            lines.append("".join(pieces) + r"\par\smallskip")
    return "\n".join([*lines, "}", ""])


def names_of(explanations: Sequence[Explanation]) -> list[str]:
    """Short names for methods about one subject, else each with its parameters."""
    subjects = {subject_of(explanation) for explanation in explanations}
    if len(explanations) > 1 and len(subjects) == 1:
        return method_titles(explanations)
    return [explanation.method for explanation in explanations]


def title_line(name: str, explanation: Explanation) -> str:
    probability = target_probability(explanation.prediction)
    percentage = "" if probability is None else f" ({100 * probability:.1f}\\,\\%)"
    return rf"\textbf{{{escape(name)}}}: {escape(explanation.target.text)}{percentage}\par"


def coloured_piece(piece: Piece, explanation: Explanation, weights: np.ndarray) -> str:
    """One piece of text on its colour; the space around it stays bare, so that lines can break."""
    word = piece.text.strip()
    if not piece.units or not word:
        if piece.kind == "outcome":
            return rf" $\rightarrow$ \textbf{{{escape(piece.text)}}}"
        return escape(piece.text)

    before = piece.text[: len(piece.text) - len(piece.text.lstrip())]
    after = piece.text[len(piece.text.rstrip()) :]
    colour = colour_behind(piece, explanation, weights)
    if colour is None:
        return f"{before}{escape(word)}{after}"
    inside = escape(word)
    if scale.ink(colour) != (0, 0, 0):
        inside = rf"\textcolor{{white}}{{{inside}}}"
    rgb = ",".join(map(str, colour))
    return rf"{before}\colorbox[RGB]{{{rgb}}}{{\strut {inside}}}{after}"


def colour_behind(piece: Piece, explanation: Explanation, weights: np.ndarray) -> scale.RGB | None:
    """The colour of a piece: one for all that was selected, or a shade of its score."""
    if is_rationale(explanation):
        return scale.FOR if selected(piece, explanation) else None
    if selection(explanation):
        return scale.SELECTED if selected(piece, explanation) else None
    strongest = max((float(weights[unit]) for unit in piece.units), key=abs)
    return scale.background(strongest, scale.PAPERS["light"])


# -- tables -------------------------------------------------------------------------------------------------


def table_of_evaluation(evaluation: Evaluation) -> str:
    """Methods down, numbers across; the best of each column in bold, intervals below."""
    titles = ["", *(escape(headings(column)) for column in evaluation.columns)]
    lines = [
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{l{'r' * len(evaluation.columns)}}}",
        r"\toprule",
        " & ".join(titles) + r" \\",
        r"\midrule",
    ]
    for method in evaluation.methods:
        lines += rows_of_method(evaluation, method)
    lines += [r"\bottomrule", r"\end{tabular}"]
    for note in warning_of_few(len(evaluation.texts)):
        lines.append(rf"\par{{\footnotesize {escape(note)}\par}}")
    return "\n".join([*lines, ""])


def rows_of_method(evaluation: Evaluation, method: str) -> list[str]:
    """The numbers of a method, and below them their intervals, if it has any."""
    values, intervals = [escape(method)], [""]
    for column in evaluation.columns:
        values.append(value_of(evaluation, method, column))
        intervals.append(interval_of(evaluation, method, column))
    rows = [values, intervals] if any(intervals) else [values]
    return [" & ".join(row) + r" \\" for row in rows]


def value_of(evaluation: Evaluation, method: str, column: Column) -> str:
    value = escape(number(evaluation.cell(method, column.key).value))
    return rf"\textbf{{{value}}}" if method in winners(evaluation, column) else value


def interval_of(evaluation: Evaluation, method: str, column: Column) -> str:
    cell = evaluation.cell(method, column.key)
    if cell.low is None or cell.high is None:
        return ""
    return rf"{{\scriptsize {escape(number(cell.low))} to {escape(number(cell.high))}}}"
