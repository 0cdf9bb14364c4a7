"""An evaluation as a table, in words: numbers, headings, the best of a column, and what must be known of all.

The terminal, Markdown, CSV, HTML and LaTeX write the same. Every number has its interval.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from raison.core.evaluation import Cell, Column, Evaluation
from raison.show.text_formats import clean_text

__all__ = [
    "COSTS",
    "FEW",
    "TOO_NARROW",
    "best_methods_of_column",
    "column_heading",
    "costs_of_method",
    "evaluation_as_csv",
    "evaluation_as_markdown",
    "evaluation_summary",
    "interval_of_cell",
    "table_number",
    "warning_of_few_texts",
]

ARROWS = {True: "↑", False: "↓", None: ""}
FEW = 50  # texts below which intervals come with a warning
TOO_NARROW = (
    f"Intervals of fewer than {FEW} texts are too narrow where values are skewed: measured coverage of 95 % intervals "
    "of 20 skewed values is 87 %."
)
COSTS = {"cpu_seconds": "CPU s", "forwards": "forward", "backwards": "backward"}
COST_DIGITS = {"cpu_seconds": 3, "forwards": 1, "backwards": 1}


def table_number(value: float | None) -> str:
    """Four decimals; a minus that lines up; a dash where there is no number."""
    if value is None:
        return "–"
    rounded = round(value, 4) + 0.0  # no minus before a zero
    return f"{rounded:.4f}".replace("-", "−")


def interval_of_cell(cell: Cell) -> str:
    """The interval of a cell."""
    if cell.low is None or cell.high is None:
        return ""
    return f"{table_number(cell.low)} … {table_number(cell.high)}"


def column_heading(column: Column) -> str:
    """The name of a column, with the direction that is better."""
    return f"{column.key} {ARROWS[column.higher]}".strip()


def best_methods_of_column(evaluation: Evaluation, column: Column) -> set[str]:
    """Methods with the best number of a column, as it is printed."""
    if column.higher is None or len(evaluation.methods) < 2:
        return set()
    printed = {}
    for method in evaluation.methods:
        value = evaluation.cell(method, column.key).value
        if value is not None:
            printed[method] = round(value, 4)
    better = max if column.higher else min
    best = better(printed.values(), default=None)
    return {method for method, value in printed.items() if value == best}


def costs_of_method(evaluation: Evaluation, method: str) -> list[str]:
    """CPU seconds and rows through the model, per text."""
    spent = evaluation.costs.get(method, {})
    texts = spent.get("texts") or 1
    shown = []
    for name, digits in COST_DIGITS.items():
        shown.append(f"{spent[name] / texts:.{digits}f}" if name in spent else "–")
    return shown


# -- sentences -------------------------------------------------------------------------------------------------


def warning_of_few_texts(*counts: int) -> list[str]:
    """What must be known of intervals over so many texts; nothing where they are enough, or one, which has none."""
    few = any(1 < texts < FEW for texts in counts)
    return [TOO_NARROW] if few else []


def evaluation_summary(evaluation: Evaluation) -> list[str]:
    """What was evaluated, and what a reader must know."""
    texts = len(evaluation.texts)
    lines = [
        describe_evaluation(evaluation),
        f"{describe_intervals(evaluation)} ↑ more is better, ↓ less is better.",
        *warning_of_few_texts(texts),
        *describe_undefined_numbers(evaluation),
    ]
    lines += [evaluation_note_as_sentence(note) for note in evaluation.notes]
    return [clean_text(line) for line in lines]


def evaluation_note_as_sentence(note: str) -> str:
    """A note with a capital and a full stop; one that is a sentence already, such as `a.csv: …`, stays as it is."""
    return note if note.endswith(".") else f"{note[:1].upper()}{note[1:]}."


def describe_evaluation(evaluation: Evaluation) -> str:
    """Model, data and settings in a line."""
    settings = evaluation.settings
    split = f" ({settings['split']})" if settings.get("split") else ""
    facts = [
        count_of_texts(len(evaluation.texts)),
        f"{settings.get('target', 'predicted')} target",
        f"{settings.get('units', 'word')} units",
        f"removal {settings.get('removal') or '–'}",
        f"seed {settings.get('seed', 0)}",
    ]
    return f"{evaluation.model} on {evaluation.data}{split}: {', '.join(facts)}"


def describe_intervals(evaluation: Evaluation) -> str:
    """How sure the intervals are."""
    if len(evaluation.texts) == 1:
        return "One text alone has no intervals."
    return f"Intervals: {evaluation.settings.get('level', 0.95):.0%}, bootstrap over texts."


def describe_undefined_numbers(evaluation: Evaluation) -> Iterator[str]:
    """Which numbers are not defined for how many texts; columns with the same gap share a sentence."""
    keys_by_gap: dict[str, list[str]] = {}
    for column in evaluation.columns:
        cells = [evaluation.cell(method, column.key) for method in evaluation.methods]
        gaps = [len(cell.each) - cell.count for cell in cells]
        if max(gaps):
            most = "" if max(gaps) == min(gaps) else "up to "
            keys_by_gap.setdefault(most + count_of_texts(max(gaps)), []).append(column.key)
    for gap, keys in keys_by_gap.items():
        yield f"{', '.join(keys)}: not defined for {gap}, left out there."


def count_of_texts(count: int) -> str:
    return f"{count} text{'' if count == 1 else 's'}"


CSV_HEAD = ("method", "metric", "number", "higher_is_better", "value", "low", "high", "texts")


def evaluation_as_markdown(evaluation: Evaluation) -> str:
    """One table with intervals; the best number of a column is bold."""
    columns = [column_heading(column) for column in evaluation.columns]
    head = ["method", *columns, *(f"{name} per text" for name in COSTS.values())]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    best = {column.key: best_methods_of_column(evaluation, column) for column in evaluation.columns}
    for method in evaluation.methods:
        cells = []
        for column in evaluation.columns:
            cell = evaluation.cell(method, column.key)
            value = table_number(cell.value)
            if method in best[column.key]:
                value = f"**{value}**"
            cells.append(f"{value} ({interval_of_cell(cell)})" if interval_of_cell(cell) else value)
        rows.append([f"`{method}`", *cells, *costs_of_method(evaluation, method)])
    title, *notes = evaluation_summary(evaluation)
    table = "\n".join(markdown_table_row(row) for row in rows)
    return "\n\n".join([f"**{title}**", table, "\n".join(notes)]) + "\n"


def markdown_table_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def evaluation_as_csv(evaluation: Evaluation) -> str:
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
