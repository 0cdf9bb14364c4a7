"""Results as LaTeX that can be pasted into a paper: coloured text by xcolor, tables by booktabs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raison.core.errors import InputError
from raison.core.evaluation import Evaluation, target_probability
from raison.core.records import Explanation
from raison.show import scale
from raison.show.certificate import is_rationale
from raison.show.consensus import subject, titles
from raison.show.scoreboard import headings, number, warning_of_few, winners
from raison.show.spans import Piece, flow, selected, selection
from raison.show.wording import clean

__all__ = ["escaped", "latex"]

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "→": r"$\rightarrow$", "↑": r"$\uparrow$",
    "↓": r"$\downarrow$", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "\n": r"\\ ",
}  # fmt: skip


def escaped(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(SPECIAL.get(sign, sign) for sign in clean(text))


def latex(saved: Any) -> str:
    """An evaluation as a table, explanations as coloured text."""
    if isinstance(saved, Evaluation):
        return table(saved)
    if not (isinstance(saved, list) and saved and all(isinstance(each, Explanation) for each in saved)):
        raise InputError("Only explanations and evaluations are written as LaTeX: draw the rest as .svg or .pdf.")
    return texts(saved)


def texts(found: Sequence[Explanation]) -> str:
    lines = [r"% needs \usepackage{xcolor}", r"{\setlength{\fboxsep}{1pt}\raggedright"]
    several = len(found) > 1 and len({subject(each) for each in found}) == 1
    names = titles(found) if several else [each.method for each in found]
    for name, each in zip(names, found, strict=True):
        likely = target_probability(each.prediction)
        share = f" ({100 * likely:.1f}\\,\\%)" if likely is not None else ""
        lines.append(rf"\textbf{{{escaped(name)}}}: {escaped(each.target.text)}{share}\par")
        weights = scale.weights(each.scores)
        for passage in flow(each):
            lines.append("".join(box(piece, each, weights) for piece in passage.pieces) + r"\par\smallskip")
    return "\n".join([*lines, "}", ""])


def box(piece: Piece, explanation: Explanation, weights: Any) -> str:
    """One piece of text on its colour; the space around it stays bare, so that lines can break."""
    word = piece.text.strip()
    before = piece.text[: len(piece.text) - len(piece.text.lstrip())]
    after = piece.text[len(piece.text.rstrip()) :] if word else ""
    if not piece.units or not word:
        if piece.kind == "outcome":
            return rf" $\rightarrow$ \textbf{{{escaped(piece.text)}}}"
        return escaped(piece.text)
    if is_rationale(explanation):
        colour = scale.FOR if selected(piece, explanation) else None
    elif selection(explanation):
        colour = scale.SELECTED if selected(piece, explanation) else None
    else:
        colour = scale.background(float(max((weights[u] for u in piece.units), key=abs)), scale.PAPERS["light"])
    if colour is None:
        return f"{before}{escaped(word)}{after}"
    inside = escaped(word) if scale.ink(colour) == (0, 0, 0) else rf"\textcolor{{white}}{{{escaped(word)}}}"
    return rf"{before}\colorbox[RGB]{{{','.join(map(str, colour))}}}{{\strut {inside}}}{after}"


def table(evaluation: Evaluation) -> str:
    """Methods down, numbers across; the best of each column in bold, intervals below."""
    best = {column.key: winners(evaluation, column) for column in evaluation.columns}
    lines = [
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{l{'r' * len(evaluation.columns)}}}",
        r"\toprule",
        " & ".join(["", *(escaped(headings(column)) for column in evaluation.columns)]) + r" \\",
        r"\midrule",
    ]
    for method in evaluation.methods:
        cells, below = [escaped(method)], [""]
        for column in evaluation.columns:
            cell = evaluation.cell(method, column.key)
            value = escaped(number(cell.value))
            cells.append(rf"\textbf{{{value}}}" if method in best[column.key] else value)
            known = cell.low is not None and cell.high is not None
            below.append(
                rf"{{\scriptsize {escaped(number(cell.low))} to {escaped(number(cell.high))}}}" if known else ""
            )
        lines.append(" & ".join(cells) + r" \\")
        if any(below):
            lines.append(" & ".join(below) + r" \\")
    below_table = [rf"\par{{\footnotesize {escaped(note)}\par}}" for note in warning_of_few(len(evaluation.texts))]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *below_table, ""])
