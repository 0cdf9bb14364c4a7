"""An evaluation as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from raison.core.evaluation import Evaluation
from raison.show.scoreboard import COSTS, between, costs, headings, number, summary, winners

__all__ = ["markdown", "spreadsheet"]

CSV_HEAD = ("method", "metric", "number", "higher_is_better", "value", "low", "high", "texts")


def markdown(evaluation: Evaluation) -> str:
    """One table with intervals; the best number of a column is bold."""
    columns = [headings(column) for column in evaluation.columns]
    head = ["method", *columns, *(f"{name} per text" for name in COSTS.values())]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    best = {column.key: winners(evaluation, column) for column in evaluation.columns}
    for method in evaluation.methods:
        cells = []
        for column in evaluation.columns:
            cell = evaluation.cell(method, column.key)
            value = number(cell.value)
            if method in best[column.key]:
                value = f"**{value}**"
            cells.append(f"{value} ({between(cell)})" if between(cell) else value)
        rows.append([f"`{method}`", *cells, *costs(evaluation, method)])
    title, *notes = summary(evaluation)
    table = "\n".join(markdown_row(row) for row in rows)
    return "\n\n".join([f"**{title}**", table, "\n".join(notes)]) + "\n"


def markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def spreadsheet(evaluation: Evaluation) -> str:
    """CSV: a row for each method and number."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(CSV_HEAD)
    for column in evaluation.columns:
        better = "" if column.higher is None else int(column.higher)
        for method in evaluation.methods:
            cell = evaluation.cell(method, column.key)
            numbers = [
                "" if value is None else repr(value) for value in (cell.value, cell.low, cell.high)
            ]
            writer.writerow([method, column.metric, column.key, better, *numbers, cell.count])
    return out.getvalue()
