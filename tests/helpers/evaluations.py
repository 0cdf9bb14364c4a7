"""Evaluations of two methods, made by hand."""

from __future__ import annotations

from raison.core.evaluation import Cell, Column, EvaluatedText, Evaluation
from raison.metrics.base import Share

SIX = ((1.0,) * 6, (0.0,) * 6)  # of 64 sign changes two are as far apart: p = 2 / 64


def table(**columns):
    """An evaluation of methods a and b by hand; a column is (numbers of a, numbers of b, whether more is better)."""
    made, cells = [], []
    for key, (first, second, higher) in columns.items():
        pooled = isinstance(first[0], Share)
        made.append(Column(key, key, higher, pooled))
        for method, values in (("a", first), ("b", second)):
            each = tuple(float(value) for value in values)
            more = (
                {"parts": tuple(v.part for v in values), "wholes": tuple(v.whole for v in values)}
                if pooled
                else {}
            )
            cells.append(Cell(method, key, sum(each) / len(each), None, None, each, **more))
    cells.sort(key=lambda cell: cell.method)
    settings = {"seed": 0, "level": 0.95, "limit": 6}
    texts = tuple(EvaluatedText(str(number), "a text") for number in range(len(cells[0].each)))
    return Evaluation(
        "a model", "a set", ("a", "b"), tuple(made), tuple(cells), texts, {}, settings
    )
