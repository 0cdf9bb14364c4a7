"""The tables of an evaluation: numbers, intervals, column headings, the best methods, a summary; Markdown and CSV.

The terminal, Markdown, CSV, HTML and LaTeX write the same. Every number has its interval.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from raison.core.evaluation import Cell, Column, Evaluation
from raison.show.text_formats import clean_text, count_with_noun

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
    "warning_of_few_evaluated_texts",
]

ARROWS = {True: "↑", False: "↓", None: ""}
FEW = 50  # texts below which intervals come with a warning
TOO_NARROW = (
    f"Intervals of fewer than {FEW} texts are too narrow where values are skewed: measured coverage of 95 % intervals "
    "of 20 skewed values is 87 %."
)
COSTS = {"cpu_seconds": "CPU s", "forwards": "forward", "backwards": "backward"}
CSV_HEAD = ("method", "metric", "number", "higher_is_better", "value", "low", "high", "texts")
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
    low = table_number(cell.low)
    high = table_number(cell.high)
    return f"{low} … {high}"


def column_heading(column: Column) -> str:
    """The name of a column, with the direction that is better."""
    arrow = ARROWS[column.higher]
    return f"{column.key} {arrow}".strip()


def best_methods_of_column(evaluation: Evaluation, column: Column) -> set[str]:
    """Methods with the best number of a column, as it is printed."""
    if column.higher is None or len(evaluation.methods) < 2:
        return set()
    printed = {}
    for method in evaluation.methods:
        cell = evaluation.cell(method, column.key)
        if cell.value is not None:
            printed[method] = round(cell.value, 4)
    if not printed:
        return set()

    values = printed.values()
    best = max(values) if column.higher else min(values)
    methods = set()
    for method, value in printed.items():
        if value == best:
            methods.add(method)
    return methods


def costs_of_method(evaluation: Evaluation, method: str) -> list[str]:
    """CPU seconds and rows through the model, per text."""
    spent = evaluation.costs.get(method, {})
    texts = spent.get("texts") or 1
    shown = []
    for name, digits in COST_DIGITS.items():
        if name not in spent:
            shown.append("–")
            continue
        per_text = spent[name] / texts
        shown.append(f"{per_text:.{digits}f}")
    return shown


# -- sentences -------------------------------------------------------------------------------------------------


def warning_of_few_evaluated_texts(*counts: int) -> list[str]:
    """What must be known of intervals over so many texts; nothing where they are enough, or one, which has none."""
    if any(1 < texts < FEW for texts in counts):
        return [TOO_NARROW]
    return []


def evaluation_summary(evaluation: Evaluation) -> list[str]:
    """What was evaluated, and what a reader must know."""
    count = len(evaluation.texts)
    title = describe_evaluation(evaluation)
    intervals = describe_intervals(evaluation)
    lines = [title, f"{intervals} ↑ more is better, ↓ less is better."]
    lines += warning_of_few_evaluated_texts(count)
    lines += describe_undefined_numbers(evaluation)
    for note in evaluation.notes:
        sentence = evaluation_note_as_sentence(note)
        lines.append(sentence)
    return [clean_text(line) for line in lines]


def evaluation_note_as_sentence(note: str) -> str:
    """A note with a capital and a full stop; one that is a sentence already, such as `a.csv: …`, stays as it is."""
    if note.endswith("."):
        return note
    capital = note[:1].upper()
    rest = note[1:]
    return f"{capital}{rest}."


def describe_evaluation(evaluation: Evaluation) -> str:
    """Model, data and settings in a line."""
    settings = evaluation.settings
    texts = count_of_evaluated_texts(len(evaluation.texts))
    target = settings.get("target", "predicted")
    units = settings.get("units", "word")
    removal = settings.get("removal") or "–"
    seed = settings.get("seed", 0)
    facts = f"{texts}, {target} target, {units} units, removal {removal}, seed {seed}"

    data = evaluation.data
    split = settings.get("split")
    if split:
        data = f"{data} ({split})"
    return f"{evaluation.model} on {data}: {facts}"


def describe_intervals(evaluation: Evaluation) -> str:
    """How sure the intervals are."""
    if len(evaluation.texts) == 1:
        return "One text alone has no intervals."
    level = evaluation.settings.get("level", 0.95)
    return f"Intervals: {level:.0%}, bootstrap over texts."


def describe_undefined_numbers(evaluation: Evaluation) -> Iterator[str]:
    """Which numbers are not defined for how many texts; columns with the same gap share a sentence."""
    keys_by_gap: dict[str, list[str]] = {}
    for column in evaluation.columns:
        gaps = []
        for method in evaluation.methods:
            cell = evaluation.cell(method, column.key)
            gap = len(cell.each) - cell.count
            gaps.append(gap)
        widest = max(gaps)
        if not widest:
            continue
        gap_in_words = count_of_evaluated_texts(widest)
        if min(gaps) < widest:
            gap_in_words = f"up to {gap_in_words}"
        keys = keys_by_gap.setdefault(gap_in_words, [])
        keys.append(column.key)

    for gap_in_words, keys in keys_by_gap.items():
        columns = ", ".join(keys)
        yield f"{columns}: not defined for {gap_in_words}, left out there."


def count_of_evaluated_texts(count: int) -> str:
    """`1 text`, `20 texts`."""
    return count_with_noun(count, "text")


# -- Markdown and CSV ----------------------------------------------------------------------------------------


def evaluation_as_markdown(evaluation: Evaluation) -> str:
    """One table with intervals; the best number of a column is bold."""
    head = ["method"]
    head += [column_heading(column) for column in evaluation.columns]
    head += [f"{name} per text" for name in COSTS.values()]
    alignments = ["---:"] * len(head)
    alignments[0] = "---"
    lines = [markdown_table_row(head), markdown_table_row(alignments)]
    for method in evaluation.methods:
        cells = [f"`{method}`"]
        for column in evaluation.columns:
            number = markdown_number(evaluation, method, column)
            cells.append(number)
        cells += costs_of_method(evaluation, method)
        line = markdown_table_row(cells)
        lines.append(line)

    title, *notes = evaluation_summary(evaluation)
    table = "\n".join(lines)
    remarks = "\n".join(notes)
    return f"**{title}**\n\n{table}\n\n{remarks}\n"


def markdown_number(evaluation: Evaluation, method: str, column: Column) -> str:
    """A number and its interval; in bold where it is the best of its column."""
    cell = evaluation.cell(method, column.key)
    value = table_number(cell.value)
    if method in best_methods_of_column(evaluation, column):
        value = f"**{value}**"
    interval = interval_of_cell(cell)
    if not interval:
        return value
    return f"{value} ({interval})"


def markdown_table_row(cells: Sequence[str]) -> str:
    """The cells of a row between lines."""
    inside = " | ".join(cells)
    return f"| {inside} |"


def evaluation_as_csv(evaluation: Evaluation) -> str:
    """CSV: a row for each method and number."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(CSV_HEAD)
    for column in evaluation.columns:
        better = "" if column.higher is None else int(column.higher)
        for method in evaluation.methods:
            cell = evaluation.cell(method, column.key)
            row = [method, column.metric, column.key, better]
            for value in (cell.value, cell.low, cell.high):
                exact = "" if value is None else repr(value)
                row.append(exact)
            row.append(cell.count)
            writer.writerow(row)
    return out.getvalue()
