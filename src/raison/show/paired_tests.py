"""Paired tests of two methods as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raison.show.scoreboard import number, warning_of_few
from raison.show.terminal.scoreboard import GAP
from raison.show.wording import clean

__all__ = ["PairedTest", "render_verdicts"]

UNDECIDED = "not decided"
TITLES = ("number", "difference", "interval", "p", "corrected", "d", "higher on", "better")
WORDS = ("number", "better")  # titles of columns that hold words
EXPLANATION = "p: paired permutation test, two-sided; corrected by Holm's rule; d: Cohen's, of paired differences."


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


def render_verdicts(tests: Sequence[PairedTest], console: Console) -> None:
    """Print differences, p-values corrected for their number, effect sizes, and who is better."""
    one, other = (tests[0].one, tests[0].other) if tests else ("", "")
    console.print(Text(clean(f"{one} − {other}"), style="bold"))

    rows = [cells_of_test(test) for test in tests]
    for columns in columns_beside_first(rows, console.width):
        console.print(table_of_columns(rows, [0, *columns]))

    for note in [EXPLANATION, *warning_of_few(*(test.count for test in tests))]:
        console.print(Text(note, style="dim"))


def cells_of_test(test: PairedTest) -> list[str]:
    """The cells of one row, in the order of TITLES."""
    interval = "–" if test.low is None else f"{number(test.low)} … {number(test.high)}"
    effect = "–" if test.effect is None else f"{test.effect:+.2f}".replace("-", "−")
    superiority = "–" if test.superiority is None else f"{test.superiority:.0%}"
    return [
        test.key,
        number(test.difference),
        interval,
        p_value(test.p),
        p_value(test.corrected),
        effect,
        superiority,
        clean(test.better or UNDECIDED),
    ]


def p_value(p: float) -> str:
    """A p-value as it is printed."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def table_of_columns(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for column in columns:
        title = TITLES[column]
        table.add_column(
            title,
            justify="left" if title in WORDS else "right",
            no_wrap=title != "better",
            overflow="fold",
        )
    for row in rows:
        table.add_row(
            *(
                Text(row[column], style="dim" if row[column] == UNDECIDED else "")
                for column in columns
            )
        )
    return table


def columns_beside_first(rows: Sequence[Sequence[str]], width: int) -> Iterator[list[int]]:
    """The columns in groups that fit beside the first, so that no number is cut."""
    widths = []
    for column, title in enumerate(TITLES):
        widths.append(max([len(title), *(len(row[column]) for row in rows)]))

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
