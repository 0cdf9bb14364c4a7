"""An evaluation in the terminal: tables of numbers and costs, and the paired tests of two methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from raison.core.evaluation import Column, Evaluation
from raison.show.evaluation_tables import (
    COSTS,
    best_methods_of_column,
    column_heading,
    costs_of_method,
    evaluation_summary,
    interval_of_cell,
    table_number,
    warning_of_few_evaluated_texts,
)
from raison.show.terminal.columns import GAP, empty_terminal_table
from raison.show.text_formats import clean_text

__all__ = ["PairedTest", "print_evaluation", "print_paired_tests"]

MEASURING = "measuring all of them"

# of paired tests
UNDECIDED = "not decided"
TITLES = ("number", "difference", "interval", "p", "corrected", "d", "higher on", "better")
TITLES_OF_WORDS = ("number", "better")  # titles of columns that hold words
P_EXPLANATION = "p: paired permutation test, two-sided; corrected by Holm's rule; d: Cohen's, of paired differences."


def print_evaluation(evaluation: Evaluation, console: Console) -> None:
    """Print what was evaluated, the numbers, what they cost, and what a reader must know."""
    title, *notes = evaluation_summary(evaluation)
    names_width = evaluation_names_width(evaluation, console.width)
    console.print(Text(title, style="bold"))
    for columns in evaluation_column_groups(evaluation, console.width):
        console.print()
        console.print(terminal_numbers_table(evaluation, columns, names_width))
    console.print()
    console.print(terminal_costs_table(evaluation, names_width))
    console.print()
    for note in notes:
        console.print(Text(note, style="dim"))


def evaluation_names_width(evaluation: Evaluation, width: int) -> int:
    """Columns for the names of methods: long ones are folded, so that no number is."""
    names = [*evaluation.methods, MEASURING]
    longest = max(len(clean_text(name)) for name in names)
    return min(longest, max(12, width // 2))


def evaluation_column_groups(evaluation: Evaluation, width: int) -> Iterator[list[Column]]:
    """The columns in groups that fit beside the names."""
    left = evaluation_names_width(evaluation, width)
    group: list[Column] = []
    used = left
    for column in evaluation.columns:
        wide = GAP + evaluation_column_width(evaluation, column)
        if group and used + wide > width:
            yield group
            group, used = [], left
        group.append(column)
        used += wide
    if group:
        yield group


def evaluation_column_width(evaluation: Evaluation, column: Column) -> int:
    """The widest of a heading and the numbers and intervals below it."""
    width = len(column_heading(column))
    for method in evaluation.methods:
        cell = evaluation.cell(method, column.key)
        width = max(width, len(interval_of_cell(cell)), len(table_number(cell.value)))
    return width


def empty_evaluation_table(first: str, names_width: int, headings: Sequence[str]) -> Table:
    """A table without rows: names of methods, and numbers."""
    table = empty_terminal_table()
    table.add_column(first, max_width=names_width, overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def terminal_numbers_table(
    evaluation: Evaluation, columns: Sequence[Column], names_width: int
) -> Table:
    """Numbers over their intervals; the best of a column is bold."""
    headings = [column_heading(column) for column in columns]
    table = empty_evaluation_table("method", names_width, headings)
    for method in evaluation.methods:
        cells: list[RenderableType] = [Text(clean_text(method))]
        for column in columns:
            cell = evaluation.cell(method, column.key)
            is_best = method in best_methods_of_column(evaluation, column)
            value = Text(table_number(cell.value), style="bold" if is_best else "")
            interval = Text(interval_of_cell(cell), style="dim")
            cells.append(Group(value, interval))
        table.add_row(*cells)
    return table


def terminal_costs_table(evaluation: Evaluation, names_width: int) -> Table:
    """What the explanations took, per text; and what measuring them took."""
    table = empty_evaluation_table("cost per text", names_width, list(COSTS.values()))
    for name in [*evaluation.methods, "metrics"]:
        if name not in evaluation.costs:
            continue
        shown = name
        if name not in evaluation.methods:
            shown = MEASURING
        table.add_row(Text(clean_text(shown)), *costs_of_method(evaluation, name))
    return table


# -- paired tests -------------------------------------------------------------------------------------------


class PairedTest(Protocol):
    """The difference of two methods in one number, tested on the same texts."""

    @property
    def key(self) -> str: ...
    @property
    def one(self) -> str: ...
    @property
    def other(self) -> str: ...
    @property
    def difference(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def p(self) -> float: ...
    @property
    def corrected(self) -> float: ...
    @property
    def effect(self) -> float | None: ...
    @property
    def superiority(self) -> float | None: ...
    @property
    def count(self) -> int: ...
    @property
    def better(self) -> str: ...


def print_paired_tests(tests: Sequence[PairedTest], console: Console) -> None:
    """Print differences, p-values corrected for their number, effect sizes, and who is better."""
    one = other = ""
    if tests:
        one, other = tests[0].one, tests[0].other
    console.print(Text(clean_text(f"{one} − {other}"), style="bold"))

    rows = [cells_of_paired_test(test) for test in tests]
    for columns in paired_test_column_groups(rows, console.width):
        console.print(paired_tests_table(rows, [0, *columns]))

    counts = [test.count for test in tests]
    for note in [P_EXPLANATION, *warning_of_few_evaluated_texts(*counts)]:
        console.print(Text(note, style="dim"))


def cells_of_paired_test(test: PairedTest) -> list[str]:
    """The cells of one row, in the order of TITLES."""
    interval = effect = superiority = "–"
    if test.low is not None:
        interval = f"{table_number(test.low)} … {table_number(test.high)}"
    if test.effect is not None:
        effect = f"{test.effect:+.2f}".replace("-", "−")
    if test.superiority is not None:
        superiority = f"{test.superiority:.0%}"
    return [
        test.key,
        table_number(test.difference),
        interval,
        p_value_in_words(test.p),
        p_value_in_words(test.corrected),
        effect,
        superiority,
        clean_text(test.better or UNDECIDED),
    ]


def p_value_in_words(p: float) -> str:
    """A p-value as it is printed."""
    if p < 0.001:
        return "< 0.001"
    return f"{p:.3f}"


def paired_tests_table(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> Table:
    """Some columns of the table of tests."""
    table = empty_terminal_table()
    for column in columns:
        title = TITLES[column]
        table.add_column(
            title,
            justify="left" if title in TITLES_OF_WORDS else "right",
            no_wrap=title != "better",
            overflow="fold",
        )
    for row in rows:
        cells = []
        for column in columns:
            is_undecided = row[column] == UNDECIDED
            cells.append(Text(row[column], style="dim" if is_undecided else ""))
        table.add_row(*cells)
    return table


def paired_test_column_groups(rows: Sequence[Sequence[str]], width: int) -> Iterator[list[int]]:
    """The columns in groups that fit beside the first, so that no number is cut."""
    widths = []
    for column, title in enumerate(TITLES):
        lengths = [len(row[column]) for row in rows]
        widths.append(max([len(title), *lengths]))

    group: list[int] = []
    used = widths[0]
    for column in range(1, len(TITLES)):
        needed = GAP + widths[column]
        if group and used + needed > width:
            yield group
            group, used = [], widths[0]
        group.append(column)
        used += needed
    yield group
